"""ProcessMesh: Paddle's answers (asked of Paddle 3.3.1), and what the library asks."""

import copy
import pickle

import numpy as np
import pytest

from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.simulate import simulate
from minipd.framework.rank import current

MESH = ProcessMesh([[0, 1, 2], [3, 4, 5]], dim_names=["x", "y"])


def test_paddles_properties():
    assert (MESH.shape, MESH.dim_names, MESH.process_ids) == ([2, 3], ["x", "y"], [0, 1, 2, 3, 4, 5])
    assert (MESH.ndim, MESH.size) == (2, 6)
    assert str(MESH) == "shape [2, 3], process_ids [0, 1, 2, 3, 4, 5], dim_names ['x', 'y']"
    assert MESH.mesh.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ProcessMesh([0, 1]).dim_names == ["d0"]
    assert str(ProcessMesh(shape=[2], process_ids=[3, 4])) == "shape [2], process_ids [3, 4], dim_names ['d0']"
    assert ProcessMesh(np.arange(4).reshape(2, 2)).shape == [2, 2]


def test_paddles_questions():
    assert MESH.get_dim_size("y") == MESH.get_dim_size(1) == MESH.dim_size("y") == 3 and MESH.get_dim_size(None) == 1
    assert MESH.contains(3) and not MESH.contains(6) and not MESH.empty()
    assert [MESH.get_rank_by_dim_and_process_id("y", r) for r in (0, 4, 5, 7)] == [0, 1, 2, -1]
    assert MESH.get_rank_by_dim_and_process_id(0, 4) == 1 and MESH.get_rank_by_dim_and_process_id(None, 4) == 0


@pytest.mark.parametrize("mesh, text", [
    (MESH.get_mesh_with_dim("y"), "shape [3, 2], process_ids [0, 3, 1, 4, 2, 5], dim_names ['y', 'x']"),
    (MESH.get_mesh_with_dim("y", 1), "shape [2], process_ids [1, 4], dim_names ['x']"),
    (ProcessMesh([3, 4], ["x"]).get_mesh_with_dim("x", 1), "shape [1], process_ids [4], dim_names ['x']"),
    (MESH[0], "shape [3], process_ids [0, 1, 2], dim_names ['y']"),
    (MESH[:, 1], "shape [2], process_ids [1, 4], dim_names ['x']"),
    (MESH[1, 2], "shape [1], process_ids [5], dim_names ['d0']"),
    (MESH[0:1], "shape [1, 3], process_ids [0, 1, 2], dim_names ['x', 'y']"),
])
def test_sub_meshes(mesh, text):
    assert str(mesh) == text


def test_equality_ignores_names_as_paddles_does_and_hashing_agrees():
    same, other = ProcessMesh([[0, 1, 2], [3, 4, 5]]), ProcessMesh([[0, 1], [2, 3], [4, 5]])
    assert MESH == same and hash(MESH) == hash(same) and MESH != other and MESH != "x=2"
    assert {MESH: 1}[same] == 1
    assert copy.deepcopy(MESH) == MESH == pickle.loads(pickle.dumps(MESH))


def test_coordinates_and_groups():
    """Rank 4 stands at (1, 1): along x it talks to 1 and itself, along y to its row."""
    assert [MESH.coordinate(r) for r in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert MESH.group(4, 0) == (1, 4) and MESH.group(4, 1) == (3, 4, 5)
    cube = ProcessMesh(np.array([7, 3, 0, 2, 5, 1, 6, 4]).reshape(2, 2, 2), ["a", "b", "c"])
    assert cube.coordinate(5) == (1, 0, 0) and [cube.group(5, axis) for axis in range(3)] == [(7, 5), (5, 6), (5, 1)]


def test_parse_mesh():
    mesh = parse_mesh(" dp=2, tp=3 ")
    assert (mesh.names, mesh.sizes, mesh.text()) == (("dp", "tp"), (2, 3), "dp=2,tp=3")
    assert mesh.process_ids == [0, 1, 2, 3, 4, 5]
    assert parse_mesh(MESH.text()) == MESH


@pytest.mark.parametrize("make, message", [
    (lambda: ProcessMesh(3), r"expected a list or an array of ranks such as \[\[0, 1\], \[2, 3\]\], got 3"),
    (lambda: ProcessMesh([0, 0]), r"expected different ranks >= 0 in a full grid, got \[0, 0\]"),
    (lambda: ProcessMesh([0, -1]), r"expected different ranks >= 0"),
    (lambda: ProcessMesh([0.5, 1]), r"expected different ranks >= 0"),
    (lambda: ProcessMesh([]), r"expected different ranks >= 0"),
    (lambda: ProcessMesh([0, 1], dim_names=["a", "b"]), r"expected a list of 1 different names for the axes"),
    (lambda: ProcessMesh([[0, 1], [2, 3]], dim_names=["a", "a"]), r"for the axes of a mesh 2x2, got \['a', 'a'\]"),
    (lambda: ProcessMesh(), r"expected mesh=\[\[0, 1\], \[2, 3\]\], or both shape and process_ids"),
    (lambda: MESH.get_dim_size("q"), r"expected an axis of the mesh x=2,y=3, got 'q'"),
    (lambda: MESH.get_mesh_with_dim("q"), r"expected an axis of the mesh x=2,y=3, got 'q'"),
    (lambda: MESH.axis(2), r"expected an axis of the mesh x=2,y=3, got 2"),
    (lambda: MESH.coordinate(6), r"expected a rank of the mesh x=2,y=3, which has \[0, 1, 2, 3, 4, 5\]; got rank 6"),
    (lambda: parse_mesh("dp2"), r"expected axes with their sizes such as dp=2,tp=2, each name once, got 'dp2'"),
    (lambda: parse_mesh("dp=0"), r"expected axes with their sizes"),
    (lambda: parse_mesh(""), r"expected axes with their sizes"),
    (lambda: parse_mesh("dp=2,dp=2"), r"each name once, got 'dp=2,dp=2'"),
])
def test_errors_say_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_sub_meshes_by_name_are_this_ranks_lines():
    """As Paddle's documentation of get_submesh_with_dim has it."""
    cube = ProcessMesh(np.arange(8).reshape(2, 2, 2), ["pp", "dp", "tp"])

    def lines(mesh):
        return [mesh[name].process_ids for name in mesh.dim_names]
    found = simulate(cube, lines)
    assert found == [[[r % 4, r % 4 + 4], [r - r // 2 % 2 * 2, r - r // 2 % 2 * 2 + 2], [r // 2 * 2, r // 2 * 2 + 1]]
                     for r in range(8)]
    assert cube.get_submesh_with_dim("dp").dim_names == ["dp"]
    with pytest.warns(UserWarning, match=r"rank 0 is not in the mesh d0=2 of the ranks \[1, 2\]"):
        assert ProcessMesh([1, 2])["d0"] is None


def test_groups_by_name():
    def groups(mesh):
        line = mesh.get_group("y")
        assert mesh.get_group("y") is line and line.ranks == list(mesh.group(current().rank, 1))
        assert mesh["x"].get_group().ranks == list(mesh.group(current().rank, 0))
        with pytest.raises(ValueError, match=r"expected the name of one of the axes \['x', 'y'\], got none"):
            mesh.get_group()
        with pytest.raises(ValueError, match="expected an axis of the mesh x=2,y=3, got 'z'"):
            mesh.get_group("z")
        return line.id
    simulate(MESH, groups)
    with pytest.raises(RuntimeError, match="ProcessMesh.get_group"):
        MESH.get_group("x")


def test_equal_meshes_have_one_number():
    turned = ProcessMesh([[0, 3], [1, 4], [2, 5]])
    assert MESH.unique_id == ProcessMesh([[0, 1, 2], [3, 4, 5]]).unique_id != turned.unique_id == turned[:].unique_id


def test_what_is_no_part_of_a_mesh():
    assert str(MESH[..., 1]) == str(MESH[:, 1]) and str(MESH[-1]) == str(MESH[1, ...])
    assert str(MESH.get_mesh_with_dim("y", slice(0, 1))) == "shape [1, 2], process_ids [0, 3], dim_names ['y', 'x']"
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
        MESH[5]
    with pytest.raises(ValueError, match="expected a part of x=2,y=3 with ranks in it"):
        MESH[0:0]
    with pytest.raises(TypeError, match="expected whole numbers and slices, one for each axis of x=2,y=3, or the name"):
        MESH[[0, 1]]
    with pytest.raises(ValueError, match="expected an axis of the mesh x=2,y=3, got 'z'"):
        MESH["z"]


@pytest.mark.parametrize("mesh", [[], np.array(3), [[0, 1], [2]], [0, 0], [0.5], [-1], [True, False]])
def test_what_is_no_mesh(mesh):
    with pytest.raises(ValueError, match="ProcessMesh: expected different ranks >= 0 in a full grid"):
        ProcessMesh(mesh)
