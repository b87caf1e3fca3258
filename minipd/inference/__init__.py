"""Paddle's `paddle.inference`: a saved model, optimised once and asked often.

    config = inference.Config("net.json", "net.pdiparams")      # what `jit.save` has written
    predictor = inference.create_predictor(config)
    image = predictor.get_input_handle(predictor.get_input_names()[0])
    image.copy_from_cpu(array)
    predictor.run()
    answer = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()

or, in one line, `answer, = predictor.run([paddle.to_tensor(array)])`.

    kinds           PrecisionType, PlaceType, DataType
    pass_builder    the list of passes, which may be changed
    config          Config: which model, which passes
    handle          Tensor: where an input is put, and a result found
    predictor       Predictor: the passes, then the executor; PredictorPool
"""

from minipd.inference.config import Config
from minipd.inference.handle import Tensor
from minipd.inference.kinds import DataType, PlaceType, PrecisionType, get_num_bytes_of_data_type
from minipd.inference.pass_builder import PassBuilder
from minipd.inference.predictor import Predictor, PredictorPool, create_predictor, get_version

__all__ = ["Config", "DataType", "PassBuilder", "PlaceType", "PrecisionType", "Predictor", "PredictorPool", "Tensor",
           "create_predictor", "get_num_bytes_of_data_type", "get_version"]
