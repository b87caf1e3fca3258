"""Chapter 5: meshes, sharded tensors, reshards."""
