-- Tensors put together and taken apart.
local _, internal = ...
local arguments = internal.require "tensor.arguments"
local check, empty, promote = internal.check, internal.empty, internal.promote
local MAX_DIMS = internal.MAX_DIMS
local fail, count, dim_of = arguments.fail, arguments.count, arguments.dim
local shape_text = arguments.shape_text

-- ---- together ----

local function common_dtype(tensors)
  local dtype = tensors[1].dtype
  for i = 2, #tensors do dtype = promote(dtype, tensors[i].dtype) end
  return dtype
end

-- As in PyTorch, a vector without elements goes with tensors of any shape.
local function is_nothing(shape) return #shape == 1 and shape[1] == 0 end

-- The shape that counts, and the size along `dim` of each: 0 for those that are nothing.
local function joined_shape(name, tensors, dim)
  local shapes, sizes, first = {}, {}, 1
  for i, x in ipairs(tensors) do shapes[i] = x.shape end
  while first < #tensors and is_nothing(shapes[first]) do first = first + 1 end
  local shape, total = shapes[first], 0
  if #shape == 0 then
    fail("%s: 0-dimensional tensors have no dimension to join: use stack", name)
  end
  dim = dim_of(name, shape, dim)
  for i, own in ipairs(shapes) do
    if is_nothing(own) then
      sizes[i] = 0
    else
      local fits = #own == #shape
      for d = 1, fits and #shape or 0 do fits = fits and (d == dim or own[d] == shape[d]) end
      if not fits then
        fail("%s: cannot join %s with %s along dimension %d: the other sizes differ", name,
             shape_text(shape), shape_text(own), dim)
      end
      sizes[i] = own[dim]
      total = total + own[dim]
    end
  end
  shape[dim] = total
  return shape, sizes, dim
end

local function join(name, tensors, given)
  local shape, sizes, dim = joined_shape(name, tensors, given)
  local out, at = empty(name, common_dtype(tensors), shape), 1
  for i, x in ipairs(tensors) do
    local size = sizes[i]
    if size > 0 then
      out:narrow(dim, at, size):copy_(x)
      at = at + size
    end
  end
  return out
end

local function joiner(name)
  return function(tensors, dim, ...)
    tensors = arguments.tensors(name, tensors)
    count(name, 2, ...)
    return join(name, tensors, dim == nil and 1 or dim)
  end
end

local function stack(tensors, dim, ...)
  tensors = arguments.tensors("stack", tensors)
  count("stack", 2, ...)
  local shape = tensors[1].shape
  for _, x in ipairs(tensors) do
    if shape_text(x.shape) ~= shape_text(shape) then
      fail("stack: cannot stack %s and %s: the sizes differ", shape_text(shape),
           shape_text(x.shape))
    end
  end
  if #shape == MAX_DIMS then
    fail("stack: %d dimensions are too many: at most %d", #shape + 1, MAX_DIMS)
  end
  table.insert(shape, 1, #tensors)
  dim = dim_of("stack", shape, dim == nil and 1 or dim)
  table.insert(shape, dim, table.remove(shape, 1))
  local out = empty("stack", common_dtype(tensors), shape)
  for i, x in ipairs(tensors) do out:select(dim, i):copy_(x) end
  return out
end

local function hstack(tensors, ...)
  tensors = arguments.tensors("hstack", tensors)
  count("hstack", 1, ...)
  for i, x in ipairs(tensors) do tensors[i] = x:atleast_1d() end
  return join("hstack", tensors, tensors[1].ndim == 1 and 1 or 2)
end

local function vstack(tensors, ...)
  tensors = arguments.tensors("vstack", tensors)
  count("vstack", 1, ...)
  for i, x in ipairs(tensors) do tensors[i] = x:atleast_2d() end
  return join("vstack", tensors, 1)
end

-- ---- apart: views ----

local MOST_PARTS = 1 << 24 -- more than memory has room for, so rather an error than an end

local function check_parts(name, n)
  if n > MOST_PARTS then fail("%s: %d parts are too many: at most %d", name, n, MOST_PARTS) end
end

local function parts(x, dim, sizes)
  local list, at = {}, 1
  for i, size in ipairs(sizes) do
    list[i] = x:narrow(dim, at, size)
    at = at + size
  end
  return list
end

-- Sizes of pieces of `size`, the last one smaller where they do not come out even.
local function even_sizes(total, size)
  local sizes = {}
  for at = 0, total - 1, size do sizes[#sizes + 1] = math.min(size, total - at) end
  return #sizes > 0 and sizes or {0}
end

local function split(x, sizes, dim, ...)
  check("split", x)
  count("split", 3, ...)
  dim = dim_of("split", x.shape, dim == nil and 1 or dim)
  local total = x:size(dim)
  if type(sizes) ~= "table" then
    local size = arguments.integer("split", 2, sizes)
    if size < 1 then fail("split: a size %d is less than 1", size) end
    check_parts("split", total // size)
    return parts(x, dim, even_sizes(total, size))
  end
  sizes = arguments.integers("split", "a size", sizes, 0)
  local sum = 0
  for _, size in ipairs(sizes) do
    if size > total - sum then sum = -1 break end
    sum = sum + size
  end
  if sum ~= total then
    fail("split: the sizes do not add up to the %d of dimension %d of a tensor of size %s", total,
         dim, shape_text(x.shape))
  end
  return parts(x, dim, sizes)
end

local function chunk(x, n, dim, ...)
  check("chunk", x)
  count("chunk", 3, ...)
  n = arguments.integer("chunk", 2, n)
  if n < 1 then fail("chunk: %d chunks are none", n) end
  dim = dim_of("chunk", x.shape, dim == nil and 1 or dim)
  local total = x:size(dim)
  check_parts("chunk", math.min(n, total))
  return parts(x, dim, even_sizes(total, math.max(1, total // n + (total % n > 0 and 1 or 0))))
end

local function tensor_split(x, where, dim, ...)
  check("tensor_split", x)
  count("tensor_split", 3, ...)
  dim = dim_of("tensor_split", x.shape, dim == nil and 1 or dim)
  local total, list = x:size(dim), {}
  if type(where) ~= "table" then
    local n, sizes = arguments.integer("tensor_split", 2, where), {}
    if n < 1 then fail("tensor_split: %d parts are none", n) end
    check_parts("tensor_split", n)
    for i = 1, n do sizes[i] = total // n + (i <= total % n and 1 or 0) end
    return parts(x, dim, sizes)
  end
  where = arguments.integers("tensor_split", "an index", where)
  local at = 1
  for i = 1, #where + 1 do
    local last = where[i] or total + 1
    if last < 0 then last = total + 1 + last end
    if last < 1 or last > total + 1 then
      fail("tensor_split: index %d is out of range for dimension %d of a tensor of size %s",
           where[i], dim, shape_text(x.shape))
    end
    list[i] = x:narrow(dim, at, math.max(last - at, 0))
    at = last
  end
  return list
end

local function unbind(x, dim, ...)
  check("unbind", x)
  count("unbind", 2, ...)
  dim = dim_of("unbind", x.shape, dim == nil and 1 or dim)
  local n, list = x:size(dim), {}
  check_parts("unbind", n)
  for i = 1, n do list[i] = x:select(dim, i) end
  return list
end

-- ---- of one shape ----

-- The tensors among the arguments: a table of them, or each.
local function tensors_of(name, first, ...)
  if internal.kind(first) == "table" then
    count(name, 1, ...)
    return arguments.tensors(name, first)
  end
  check(name, first, ...)
  return {first, ...}
end

local function broadcast_tensors(...)
  local tensors = tensors_of("broadcast_tensors", ...)
  local ndim, shape, list = 0, {}, {}
  for _, x in ipairs(tensors) do ndim = math.max(ndim, x.ndim) end
  for d = 1, ndim do shape[d] = 1 end
  for _, x in ipairs(tensors) do
    local own = x.shape
    for d = 1, #own do
      local at = ndim - #own + d
      if shape[at] == 1 then shape[at] = own[d] end
      if own[d] ~= 1 and own[d] ~= shape[at] then
        fail("broadcast_tensors: cannot broadcast %s with the others: sizes %d and %d differ in " ..
             "dimension %d", shape_text(own), shape[at], own[d], at)
      end
    end
  end
  for i, x in ipairs(tensors) do list[i] = x:expand(shape) end
  return list
end

-- The option of the last argument, which may be the table of tensors as well.
local function take_indexing(given)
  local options = given[given.n]
  if type(options) ~= "table" then return "ij" end
  for key in next, options do
    if key ~= "indexing" and not math.tointeger(key) then
      fail("meshgrid: unknown option '%s': indexing", arguments.describe(key))
    end
  end
  if rawlen(options) == 0 then given.n = given.n - 1 end
  local indexing = rawget(options, "indexing")
  if indexing == nil or indexing == "ij" or indexing == "xy" then return indexing or "ij" end
  return fail("meshgrid: indexing is 'ij' or 'xy', not %s", arguments.describe(indexing))
end

local function meshgrid(...)
  local given = table.pack(...)
  local indexing = given.n > 0 and take_indexing(given)
  local vectors = tensors_of("meshgrid", table.unpack(given, 1, given.n))
  local shape, list = {}, {}
  for i, x in ipairs(vectors) do
    if x.ndim > 1 then
      fail("meshgrid: wants vectors, and tensor %d is %s", i, shape_text(x.shape))
    end
    shape[i] = x:numel()
  end
  if #shape > MAX_DIMS then
    fail("meshgrid: %d dimensions are too many: at most %d", #shape, MAX_DIMS)
  end
  for i, x in ipairs(vectors) do
    local own = {}
    for d = 1, #shape do own[d] = d == i and shape[d] or 1 end
    list[i] = x:reshape(own):expand(shape)
    if indexing == "xy" and #shape > 1 then list[i] = list[i]:transpose(1, 2) end
  end
  return list
end

return {
  {"cat", joiner "cat", method = false,
   doc = "cat(tensors, dim = 1): a table of tensors, one behind the other along a dimension",
   example = "tensor.cat{tensor{1, 2}, tensor{3}}", value = "tensor([1., 2., 3.])"},
  {"concat", joiner "concat", method = false, doc = "concat(tensors, dim = 1): the same as cat",
   example = "tensor.concat({tensor{{1}}, tensor{{2}}}, 2)", value = "tensor([[1., 2.]])"},
  {"stack", stack, method = false,
   doc = "stack(tensors, dim = 1): a table of tensors of one size, along a new dimension",
   example = "tensor.stack{tensor{1, 2}, tensor{3, 4}}",
   value = "tensor([[1., 2.],\n        [3., 4.]])"},
  {"hstack", hstack, method = false,
   doc = "hstack(tensors): side by side, along dimension 2, or 1 of vectors",
   example = "tensor.hstack{tensor{{1}, {2}}, tensor{{3}, {4}}}",
   value = "tensor([[1., 3.],\n        [2., 4.]])"},
  {"vstack", vstack, method = false,
   doc = "vstack(tensors): one above the other, along dimension 1, vectors as rows",
   example = "tensor.vstack{tensor{1, 2}, tensor{3, 4}}",
   value = "tensor([[1., 2.],\n        [3., 4.]])"},
  {"split", split,
   doc = "split(x, size or sizes, dim = 1): a table of views, parts of these sizes",
   example = "tensor.arange(5):split(2)[3]", value = "tensor([5.])"},
  {"chunk", chunk,
   doc = "chunk(x, n, dim = 1): a table of at most n views, all but the last as large",
   example = "#tensor.arange(5):chunk(2)[1]", value = "3"},
  {"tensor_split", tensor_split,
   doc = "tensor_split(x, n or indices, dim = 1): a table of n views, or of views from these on",
   example = "tensor.arange(5):tensor_split{2, 4}[2]", value = "tensor([2., 3.])"},
  {"unbind", unbind, doc = "unbind(x, dim = 1): a table of views, one for each index",
   example = "tensor{{1, 2}, {3, 4}}:unbind()[2]", value = "tensor([3., 4.])"},
  {"broadcast_tensors", broadcast_tensors, method = false,
   doc = "broadcast_tensors(x, ...): a table of views of them, all of the size they broadcast to",
   example = "tensor.broadcast_tensors(tensor{1, 2}, tensor(5))[2]", value = "tensor([5., 5.])"},
  {"meshgrid", meshgrid, method = false,
   doc = "meshgrid(x, ... [, {indexing = 'xy'}]): a table of views, the coordinates of a grid",
   example = "tensor.meshgrid(tensor{1, 2}, tensor{3, 4})[1]",
   value = "tensor([[1., 1.],\n        [2., 2.]])"},
}
