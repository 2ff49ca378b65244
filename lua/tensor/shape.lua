-- Shapes: what can be said through reshape and the views that C makes.
local _, internal = ...
local arguments = internal.require "tensor.arguments"
local check, empty = internal.check, internal.empty
local MAX_DIMS = internal.MAX_DIMS
local fail, count, dim_of = arguments.fail, arguments.count, arguments.dim
local around = arguments.around

-- ---- dimensions ----

local function flatten(x, first, last, ...)
  check("flatten", x)
  count("flatten", 3, ...)
  local shape = x.shape
  if #shape == 0 then shape = {1} end -- it becomes one
  first, last = dim_of("flatten", shape, first or 1), dim_of("flatten", shape, last or -1)
  if first > last then fail "flatten: the first dimension must not come after the last" end
  local size, product = {}, 1
  for d = 1, #shape do
    if d >= first and d <= last then product = product * shape[d] end
    if d < first or d > last then
      size[#size + 1] = shape[d]
    elseif d == last then
      size[#size + 1] = product
    end
  end
  return x:reshape(size)
end

local function atleast_1d(x, ...)
  check("atleast_1d", x)
  count("atleast_1d", 1, ...)
  return x.ndim < 1 and x:reshape(1) or x
end

local function atleast_2d(x, ...)
  check("atleast_2d", x)
  count("atleast_2d", 1, ...)
  if x.ndim == 0 then return x:reshape(1, 1) end
  return x.ndim == 1 and x:unsqueeze(1) or x
end

-- A vector stands in the middle, a matrix in front.
local function atleast_3d(x, ...)
  check("atleast_3d", x)
  count("atleast_3d", 1, ...)
  if x.ndim == 0 then return x:reshape(1, 1, 1) end
  if x.ndim == 1 then return x:unsqueeze(1):unsqueeze(3) end
  return x.ndim == 2 and x:unsqueeze(3) or x
end

-- ---- order ----

local function at_least(name, x, ndim)
  check(name, x)
  if x.ndim < ndim then
    fail("%s: wants at least %d dimension%s, not %d", name, ndim, ndim > 1 and "s" or "", x.ndim)
  end
end

local function fliplr(x, ...)
  at_least("fliplr", x, 2)
  count("fliplr", 1, ...)
  return x:flip(2)
end

local function flipud(x, ...)
  at_least("flipud", x, 1)
  count("flipud", 1, ...)
  return x:flip(1)
end

local function rot90(x, times, dims, ...)
  at_least("rot90", x, 2)
  count("rot90", 3, ...)
  times = times == nil and 1 or arguments.integer("rot90", 2, times)
  local plane = dims == nil and {1, 2} or arguments.list(dims)
  if #plane ~= 2 then fail("rot90: wants 2 dimensions to turn, not %d", #plane) end
  local from, to = dim_of("rot90", x.shape, plane[1]), dim_of("rot90", x.shape, plane[2])
  if from == to then fail("rot90: dimension %d is given twice", from) end
  times = times % 4
  if times == 0 then return x:clone() end
  if times == 1 then return x:flip(to):transpose(from, to) end
  if times == 2 then return x:flip(from, to) end
  return x:flip(from):transpose(from, to)
end

-- Each part of `from` goes to its place in `to`, which dimension by dimension is two.
local function place_rolled(to, from, dims, shifts, i)
  if i > #dims then
    to:copy_(from)
    return
  end
  local dim, shift = dims[i], shifts[i]
  local rest = from:size(dim) - shift
  place_rolled(to:narrow(dim, shift + 1, rest), from:narrow(dim, 1, rest), dims, shifts, i + 1)
  place_rolled(to:narrow(dim, 1, shift), from:narrow(dim, rest + 1, shift), dims, shifts, i + 1)
end

local function roll(x, shifts, dims, ...)
  check("roll", x)
  count("roll", 3, ...)
  shifts = arguments.integers("roll", "shift", shifts)
  local shape, from = x.shape, x
  if dims == nil then
    if #shifts ~= 1 then fail("roll: %d shifts want as many dimensions", #shifts) end
    from, dims = x:reshape(-1), {1}
  else
    dims = arguments.list(dims)
    if #dims ~= #shifts then
      fail("roll: %d shifts do not go with %d dimensions: as many are wanted", #shifts, #dims)
    end
  end
  local by = {} -- a dimension may come twice
  for i = 1, #dims do
    local dim = dim_of("roll", from.shape, dims[i])
    by[dim] = (by[dim] or 0) + shifts[i] % math.max(from:size(dim), 1)
  end
  local rolled, places = {}, {}
  for dim = 1, from.ndim do
    local shift = (by[dim] or 0) % math.max(from:size(dim), 1)
    if shift > 0 then rolled[#rolled + 1], places[#places + 1] = dim, shift end
  end
  local out = empty("roll", x.dtype, from.shape)
  place_rolled(out, from, rolled, places, 1)
  return out:reshape(shape)
end

-- ---- repeating ----

-- Writes x, of `before` x `behind` elements, n times: as before x n x behind.
local function spread(out, x, before, n, behind)
  out:view(before, n, behind):copy_(x:reshape(before, 1, behind))
end

-- The size of a dimension of `size` elements, n times.
local function scaled(name, size, n)
  if size > 0 and n > math.maxinteger // size then
    fail("%s: %d times %d elements are too many", name, n, size)
  end
  return size * n
end

-- Dimension by dimension from the last one: what is copied more than once is small then.
local function tile(x, ...)
  check("tile", x)
  local given, counts = ..., nil
  if type(given) == "table" then
    count("tile", 2, select(2, ...))
    counts = arguments.integers("tile", "a count", given, 0)
  else
    counts = arguments.integers("tile", "a count", select("#", ...) > 0 and {...} or nil, 0)
  end
  local shape, size = x.shape, {}
  local ndim = math.max(#counts, #shape)
  if ndim > MAX_DIMS then fail("tile: %d dimensions are too many: at most %d", ndim, MAX_DIMS) end
  for _ = #shape + 1, ndim do table.insert(shape, 1, 1) end
  for _ = #counts + 1, ndim do table.insert(counts, 1, 1) end
  for d = 1, ndim do size[d] = scaled("tile", shape[d], counts[d]) end
  local out, from, first = empty("tile", x.dtype, size), x:reshape(shape), 1
  if out:numel() == 0 then return out end
  while counts[first] == 1 do first = first + 1 end
  if first > ndim then return out:copy_(from) end
  for d = ndim, first, -1 do
    if counts[d] > 1 then
      local before, behind = around(shape, d)
      behind, shape[d] = behind * shape[d], size[d]
      local to = d == first and out or empty("tile", x.dtype, shape)
      spread(to, from, before, counts[d], behind)
      from = to
    end
  end
  return out
end

-- The size depends on the counts, so it waits for their sum.
local function repeat_by_counts(x, counts, dim)
  if dim == nil then x, dim = x:reshape(-1), 1 end
  local shape = x.shape
  dim = dim_of("repeat_interleave", shape, dim)
  if counts.ndim ~= 1 or counts:numel() ~= shape[dim] then
    fail("repeat_interleave: wants %d counts, one for each index of dimension %d, not size %s",
         shape[dim], dim, arguments.size_text(counts))
  end
  if shape[dim] == 0 then return x:clone() end
  local least, ends = counts:amin(), counts:to("int64"):cumsum(1)
  if least:item() < 0 then fail("repeat_interleave: a count %d is less than 0", least:item()) end
  local places = internal.tensor.arange(1, ends[-1]:item(), {dtype = "int64"})
  return (x:index_select(dim, ends:searchsorted(places)))
end

local function repeat_interleave(x, n, dim, ...)
  check("repeat_interleave", x)
  count("repeat_interleave", 3, ...)
  if internal.kind(n) == "tensor" then return (repeat_by_counts(x, n, dim)) end
  n = arguments.integer("repeat_interleave", 2, n)
  if n < 0 then fail("repeat_interleave: a count %d is less than 0", n) end
  if dim == nil then x, dim = x:reshape(-1), 1 end
  local shape = x.shape
  dim = dim_of("repeat_interleave", shape, dim)
  local before, behind = around(shape, dim)
  before = before * shape[dim]
  shape[dim] = scaled("repeat_interleave", shape[dim], n)
  local out = empty("repeat_interleave", x.dtype, shape)
  if out:numel() > 0 then spread(out, x, before, n, behind) end
  return out
end

-- ---- triangles and diagonals ----

-- Zeroes in place, in matrices of a contiguous or transposed tensor of three dimensions, what lies
-- on and above the diagonal `offset`: what is beside the square that the diagonal crosses, the
-- diagonal, and then square blocks of 1, 2, 4, ... rows above it, all of one size at once.
local function zero_above(x, offset)
  local rows, columns = x:size(2), x:size(3)
  if offset >= columns then return end
  if offset <= -rows then
    x:zero_()
    return
  end
  if offset < 0 then
    x:narrow(2, 1, -offset):zero_()
    x = x:narrow(2, 1 - offset, rows + offset)
  elseif offset > 0 then
    x = x:narrow(3, 1 + offset, columns - offset)
  end
  rows, columns = x:size(2), x:size(3)
  if columns > rows then x:narrow(3, rows + 1, columns - rows):zero_() end
  local size, block = math.min(rows, columns), 1
  x = x:narrow(2, 1, size):narrow(3, 1, size)
  x:diagonal(0, 2, 3):zero_()
  while block < size do
    local both = 2 * block
    if both <= size then
      local right = x:narrow(3, block + 1, size - block)
      right:unfold(2, block, both):unfold(3, block, both):diagonal(0, 2, 3):zero_()
    end
    local first = size // both * both -- of the last, narrower blocks
    if size - first > block then
      x:narrow(2, first + 1, block):narrow(3, first + block + 1, size - first - block):zero_()
    end
    block = both
  end
end

local function triangle(name, turn, x, offset, ...)
  check(name, x)
  count(name, 2, ...)
  offset = offset == nil and 0 or arguments.integer(name, 2, offset)
  local shape = x.shape
  if #shape < 2 then fail("%s: wants at least 2 dimensions, not %d", name, #shape) end
  local out = empty(name, x.dtype, shape):copy_(x)
  if out:numel() > 0 then
    local matrices = out:view(-1, shape[#shape - 1], shape[#shape])
    offset = math.max(-math.maxinteger, math.min(offset, math.maxinteger - 1))
    if turn then
      zero_above(matrices:transpose(2, 3), 1 - offset)
    else
      zero_above(matrices, offset + 1)
    end
  end
  return out
end

local function tril(...) return triangle("tril", false, ...) end

local function triu(...) return triangle("triu", true, ...) end

-- In place, of any layout: the triangle of a copy.
local function in_place(name, turn)
  return function(x, offset, ...)
    check(name, x)
    count(name, 2, ...)
    return x:copy_(triangle(name, turn, x, offset))
  end
end

local function trace(x, ...)
  check("trace", x)
  count("trace", 1, ...)
  if x.ndim ~= 2 then fail("trace: wants 2 dimensions, not %d", x.ndim) end
  return x:diagonal():sum()
end

local function diag(x, offset, ...)
  check("diag", x)
  count("diag", 2, ...)
  offset = offset == nil and 0 or arguments.integer("diag", 2, offset)
  if x.ndim == 2 then return x:diagonal(offset):clone() end
  if x.ndim ~= 1 then fail("diag: wants 1 or 2 dimensions, not %d", x.ndim) end
  local size = x:size(1) + math.abs(offset)
  local out = empty("diag", x.dtype, {size, size}):zero_()
  out:diagonal(offset):copy_(x)
  return out
end

return {
  {"flatten", flatten,
   doc = "flatten(x [, first, last]): dimensions first to last as one, a view if it can be",
   example = "tensor.ones(2, 3):flatten()", value = "tensor([1., 1., 1., 1., 1., 1.])"},
  {"atleast_1d", atleast_1d, doc = "x, or a view of one element as a vector",
   example = "tensor(5):atleast_1d()", value = "tensor([5.])"},
  {"atleast_2d", atleast_2d, doc = "x, or a view of a vector as a row",
   example = "tensor{5, 6}:atleast_2d()", value = "tensor([[5., 6.]])"},
  {"atleast_3d", atleast_3d, doc = "x, or a view: n as 1 x n x 1, n x m as n x m x 1",
   example = "tensor.zeros(2, 3):atleast_3d():size(3)", value = "1"},
  {"fliplr", fliplr, doc = "a copy with its second dimension reversed",
   example = "tensor{{1, 2}, {3, 4}}:fliplr()", value = "tensor([[2., 1.],\n        [4., 3.]])"},
  {"flipud", flipud, doc = "a copy with its first dimension reversed",
   example = "tensor{{1, 2}, {3, 4}}:flipud()", value = "tensor([[3., 4.],\n        [1., 2.]])"},
  {"rot90", rot90,
   doc = "rot90(x, n = 1, dims = {1, 2}): a copy turned n times from one dimension to the other",
   example = "tensor{{1, 2}, {3, 4}}:rot90()", value = "tensor([[2., 4.],\n        [1., 3.]])"},
  {"roll", roll, doc = "roll(x, shifts [, dims]): a copy moved along, what leaves comes in again",
   example = "tensor{1, 2, 3, 4}:roll(1)", value = "tensor([4., 1., 2., 3.])"},
  {"tile", tile, doc = "tile(x, n, ...): copies side by side, so many along each dimension",
   example = "tensor{1, 2}:tile(2, 2)",
   value = "tensor([[1., 2., 1., 2.],\n        [1., 2., 1., 2.]])"},
  {"repeat_interleave", repeat_interleave,
   doc = "repeat_interleave(x, n [, dim]): each element n times (waits where n is a tensor)",
   example = "tensor{1, 2}:repeat_interleave(2)", value = "tensor([1., 1., 2., 2.])"},
  {"tril", tril, doc = "tril(x, k = 0): a copy of matrices with zeros above the k-th diagonal",
   example = "tensor.ones(2, 2):tril()", value = "tensor([[1., 0.],\n        [1., 1.]])"},
  {"triu", triu, doc = "triu(x, k = 0): a copy of matrices with zeros below the k-th diagonal",
   example = "tensor.ones(2, 2):triu()", value = "tensor([[1., 1.],\n        [0., 1.]])"},
  {"tril_", in_place("tril_", false), doc = "tril_(x, k = 0): zeros above the k-th diagonal",
   example = "tensor.ones(2, 2):tril_()", value = "tensor([[1., 0.],\n        [1., 1.]])"},
  {"triu_", in_place("triu_", true), doc = "triu_(x, k = 0): zeros below the k-th diagonal",
   example = "tensor.ones(2, 2):triu_()", value = "tensor([[1., 1.],\n        [0., 1.]])"},
  {"trace", trace, doc = "sum of a matrix's diagonal",
   example = "tensor{{1, 2}, {3, 4}}:trace()", value = "tensor(5.)"},
  {"diag", diag,
   doc = "diag(x, k = 0): a matrix with the vector x as k-th diagonal, or a matrix's, copied",
   example = "tensor{1, 2}:diag()", value = "tensor([[1., 0.],\n        [0., 2.]])"},
}
