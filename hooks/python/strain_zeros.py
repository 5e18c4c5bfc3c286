# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the strain authors
"""Large matrices of zeros that a PyTorch model multiplies by: the adjacency of a graph, one-hot rows, a bag of words. A sparse
matrix, or a lookup of rows, takes a fraction of the time.

A matrix is an argument of a module, or a tensor that one of its layers holds and no optimizer updates. Some thousand of its elements are
looked at, once; none on a device, where looking would wait."""

LARGE = 1 << 20  # elements
ROWS = 16  # that are looked at
COLUMNS = 1 << 10  # of each: too few in all for PyTorch to start threads
MOST = 0.95  # zeros
TENSORS = 64  # arguments, or attributes of layers


class Zeros:
    """The largest of these matrices in the first steps."""

    __slots__ = ("_torch", "elements", "zeros", "looked_at")

    def __init__(self, torch):
        self._torch = torch
        self.elements = self.zeros = self.looked_at = 0

    def look(self, tensors):
        """Looks at the matrices among some objects."""
        for tensor in tensors[:TENSORS]:
            try:
                if type(tensor) is self._torch.Tensor and self.elements < tensor.numel() >= LARGE:
                    self._look_at(tensor)
            except Exception:  # a tensor of another kind, such as those within vmap(): it adds to advice only
                return

    def look_within(self, module):
        """Looks at the tensors of a module's layers that are no parameters."""
        for layer in module.modules():
            self.look([*layer._buffers.values(), *vars(layer).values()])

    def facts(self):
        """Pairs of keys and values for the run; none if there is no such matrix."""
        names = ("optimizer_zeros", "optimizer_zeros_of", "optimizer_zeros_elements")
        counts = (self.zeros, self.looked_at, self.elements)
        return tuple(zip(names, map(str, counts))) if self.elements else ()

    def _look_at(self, tensor):
        torch = self._torch
        plain = tensor.layout == torch.strided and tensor.is_floating_point() and tensor.device.type == "cpu"
        if not plain or tensor.dim() not in (2, 3):
            return
        matrix = tensor.detach()
        matrix = matrix[0] if matrix.dim() == 3 else matrix
        rows, columns = matrix.shape
        if min(rows, columns) < ROWS:
            return
        some = matrix[:: -(-rows // ROWS), :: -(-columns // COLUMNS)]
        zeros = some.numel() - int(torch.count_nonzero(some))
        if zeros >= MOST * some.numel():
            self.elements, self.zeros, self.looked_at = tensor.numel(), zeros, some.numel()
