-- Elements picked by indices and masks: x[key] for reading and writing, gather, scatter_ and their
-- like, with NumPy as the oracle; what waits and what does not; indices that are out of range.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises, contains = lu.assertEquals, support.assert_raises, lu.assertStrContains
local random = math.random

local function int(data) return tensor(data, {dtype = "int64"}) end
local function bool(data) return tensor(data, {dtype = "bool"}) end

local ROUNDS = support.slow and 8 or 120 -- random cases of each kind

-- ---- the oracle ----

local PRELUDE = [[
at = 0
result = []
def take(count):
    global at
    at += count
    return data[at - count:at]
def arr(shape, dtype):
    return np.array(take(int(np.prod(shape)))).astype(dtype).reshape(shape)
def ix(a, size): # counted from 1, or from the end
    return np.where(a > 0, a - 1, a + size)
def out(a):
    a = np.asarray(a)
    result.append(a.ndim)
    result.extend(a.shape)
    result.extend(a.astype('float64').ravel().tolist())
]]

-- Cases for one run of Python: `code` calls out(x) once for each tensor in `results`.
local function new_batch()
  local batch = {code = {PRELUDE}, data = {}, results = {}}

  -- Python text for a tensor's values.
  function batch.array(shape, values, dtype)
    table.move(values, 1, #values, #batch.data + 1, batch.data)
    dtype = dtype == "bfloat16" and "float32" or dtype
    return ("arr((%s), '%s')"):format(#shape > 0 and table.concat(shape, ",") .. "," or "", dtype)
  end

  function batch.add(code, result, what)
    batch.code[#batch.code + 1] = code
    batch.results[#batch.results + 1] = {result, what}
  end

  function batch.compare()
    local expected = support.numpy(table.concat(batch.code, "\n"), batch.data)
    if not expected then lu.skip "no NumPy" end
    local at = 1
    for _, case in ipairs(batch.results) do
      local x, what = case[1], case[2]
      local shape = table.move(expected, at + 1, at + expected[at], 1, {})
      local count = support.numel(shape)
      at = at + 1 + #shape
      equals(support.shape_text(x.shape), support.shape_text(shape):gsub("%.0", ""), what)
      local got = support.flat(x)
      equals(#got, count, what)
      for i = 1, count do
        local value = got[i]
        if type(value) == "boolean" then value = value and 1 or 0 end
        if value ~= expected[at + i - 1] then
          error(("%s: element %d is %s, not %s"):format(what, i, value, expected[at + i - 1]))
        end
      end
      at = at + count
    end
    equals(at, #expected + 1)
  end
  return batch
end

-- ---- random operands ----

local DTYPES = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                "uint8", "bool"}
local INDEX_DTYPES = {"int64", "int64", "int32", "int16", "int8", "uint8"}

local function one_of(list) return list[random(#list)] end

local function random_shape(least, most, largest)
  local shape = {}
  for d = 1, random(least, most) do shape[d] = random(20) == 1 and 0 or random(largest) end
  return shape
end

local function random_values(count, dtype)
  local low = (dtype == "uint8" or dtype == "bool") and 0 or -9
  return support.random_integers(count, low, dtype == "bool" and 1 or 9)
end

-- A tensor, and Python text for its values.
local function operand(batch, shape, dtype)
  local values = random_values(support.numel(shape), dtype)
  return support.any_layout(shape, values, dtype), batch.array(shape, values, dtype)
end

-- Indices into a dimension, and Python text for them, from 0.
local function indices(batch, shape, size)
  local dtype, values = one_of(INDEX_DTYPES), {}
  local signed = dtype ~= "uint8"
  for i = 1, support.numel(shape) do
    values[i] = signed and random(2) == 1 and -random(size) or random(size)
  end
  local index = support.any_layout(shape, values, dtype)
  if #shape == 0 then return index, tostring(values[1] > 0 and values[1] - 1 or values[1]) end
  return index, ("ix(%s, %d)"):format(batch.array(shape, values, "int64"), size)
end

-- A copy with no other handle on its memory, to be written to.
local function own(x, layout)
  local y = x:clone()
  if layout and x.ndim > 1 then
    local n = x.ndim
    y = x:transpose(n - 1, n):clone():transpose(n - 1, n)
  end
  return y
end

-- ---- keys ----

-- A key for a shape; the same for Python in two stages, since PyTorch, unlike NumPy, takes numbers
-- first.  Gives also how many tensors with dimensions are in it.
local function random_key(batch, shape, shared)
  local key, first, second, d = {}, {}, {}, 1
  local masks, tensors = 0, 0
  while d <= #shape do
    local size, kind = shape[d], random(6)
    if kind == 1 and size > 0 then
      local i = random(size)
      key[#key + 1] = random(2) == 1 and i or i - size - 1
      first[#first + 1] = tostring(i - 1)
    elseif kind == 2 and size > 0 then
      local a, step = random(size), random(2)
      local b = random(a, size)
      key[#key + 1] = {a, b, step}
      first[#first + 1] = ("slice(%d, %d, %d)"):format(a - 1, b, step)
      second[#second + 1] = "slice(None)"
    elseif kind >= 5 and size > 0 then
      -- A shape that broadcasts with those of the others.
      local own_shape = {}
      for i = random(#shared + 1), #shared do
        own_shape[#own_shape + 1] = random(4) == 1 and 1 or shared[i]
      end
      if masks > 0 then own_shape = {1} end
      local index, text = indices(batch, own_shape, size)
      key[#key + 1] = index
      if #own_shape == 0 then
        first[#first + 1] = text
      else
        first[#first + 1] = "slice(None)"
        second[#second + 1] = text
        tensors = tensors + 1
      end
    elseif kind == 4 and masks + tensors == 0 then
      local mask_shape = {size}
      if d < #shape and random(2) == 1 then mask_shape[2] = shape[d + 1] end
      local mask, text = operand(batch, mask_shape, "bool")
      key[#key + 1] = mask
      for _ = 1, #mask_shape do first[#first + 1] = "slice(None)" end
      second[#second + 1] = text
      d = d + #mask_shape - 1
      masks = masks + 1
    else
      key[#key + 1] = {}
      first[#first + 1] = "slice(None)"
      second[#second + 1] = "slice(None)"
    end
    d = d + 1
    if random(8) == 1 then break end
  end
  local lone = #key == 1 and type(key[1]) == "userdata" and random(2) == 1
  local function tuple(list) return "(" .. table.concat(list, ",") .. (#list > 0 and "," or "") end
  return lone and key[1] or key, tuple(first) .. "Ellipsis,)", tuple(second) .. ")"
end

TestKeys = {}

function TestKeys:test_reading()
  local batch = new_batch()
  for round = 1, ROUNDS * 3 do
    local shape, dtype = random_shape(1, 4, 4), one_of(DTYPES)
    local x, text = operand(batch, shape, dtype)
    local key, first, second = random_key(batch, shape, random_shape(0, 2, 3))
    batch.add(("x = %s\nout(x[%s][%s])"):format(text, first, second), x[key],
              ("round %d: %s[%s][%s]"):format(round, support.shape_text(shape), first, second))
  end
  batch.compare()
end

-- The shape of a value that broadcasts to a shape.
local function narrower(shape)
  local own_shape = {}
  for d = random(#shape + 1), #shape do
    own_shape[#own_shape + 1] = random(4) == 1 and 1 or shape[d]
  end
  return own_shape
end

function TestKeys:test_writing()
  local batch = new_batch()
  for round = 1, ROUNDS * 3 do
    local shape, dtype = random_shape(1, 4, 4), one_of(DTYPES)
    local x, text = operand(batch, shape, dtype)
    local code = {"x = " .. text}
    local key, first, second = random_key(batch, shape, random_shape(0, 2, 3))
    code[2] = "k = " .. second
    local value_shape = narrower(x[key].shape)
    local kind, value = random(3)
    if kind == 1 then
      value = one_of {0, 1, 3}
      code[#code + 1] = ("v = np.asarray(%d).astype(x.dtype)"):format(value)
    else
      value, text = operand(batch, value_shape, kind == 2 and dtype or one_of(DTYPES))
      code[#code + 1] = "v = " .. text
    end
    code[#code + 1] = ("w = x[%s]\nw[k] = v.astype(x.dtype)\nout(x)"):format(first)
    local y = own(x, random(2) == 1)
    y[key] = value
    batch.add(table.concat(code, "\n"), y,
              ("round %d: %s[%s][%s]"):format(round, support.shape_text(shape), first, second))
  end
  batch.compare()
end

-- Adds in order, wherever it goes several times.
function TestKeys:test_index_put()
  local batch = new_batch()
  for round = 1, ROUNDS do
    local shape, dtype = random_shape(1, 3, 4), one_of(DTYPES)
    local x, text = operand(batch, shape, dtype)
    local key, first, second = random_key(batch, shape, random_shape(0, 2, 6))
    local value, value_text = operand(batch, narrower(x[key].shape), dtype)
    local y = own(x):index_put_(key, value, true)
    batch.add(("x = %s\nk = %s\nv = %s\nw = x[%s]\nnp.add.at(w, k, v)\nout(x)"):format(text, second,
              value_text, first), y, "round " .. round)
  end
  batch.compare()
end

-- A mask without dimensions picks all or nothing, with one more dimension.
function TestKeys:test_mask_without_dimensions()
  local x = tensor{1, 2}
  equals(x[x:sum():gt(0)].shape, {1, 2})
  equals(x[x:sum():lt(0)].shape, {0, 2})
  local s = tensor(3)
  equals(s[s:gt(2)]:totable(), {3})
  s[s:gt(2)] = 7
  equals(s:item(), 7)
  s[s:lt(2)] = 8
  equals(s:item(), 7)
  x[x:sum():gt(0)] = tensor{{5, 6}}
  equals(x:totable(), {5, 6})
end

function TestKeys:test_api_examples()
  local x = tensor.arange(24):reshape(2, 3, 4)
  equals(x[{int{2, 1}, {}, 3}]:totable(), {{15, 19, 23}, {3, 7, 11}})
  equals(x[{int{1, 2}, {}, int{1, 2, 2, 2}:reshape(2, 2)[1]}].shape, {2, 3}) -- to the front
  equals(x[{1, int{1, 2}, int{1, 2}}]:totable(), {1, 6})
  equals(x[{{}, bool{true, false, true}}].shape, {2, 2, 4})
  equals(x[-1][int{-1, -3}]:totable(), {{21, 22, 23, 24}, {13, 14, 15, 16}})
  equals(x[int(2)].shape, {3, 4})
  equals(tensor.index(x, int{1}).shape, {1, 3, 4})
end

-- What is read is a tensor of its own, not a view.
function TestKeys:test_copies()
  local x = tensor{1, 2, 3}
  local y = x[int{1, 2}]
  y:zero_()
  equals(x:totable(), {1, 2, 3})
  equals(x[bool{true, true, true}]:fill_(5):totable(), {5, 5, 5})
  equals(x:totable(), {1, 2, 3})
end

-- What is written, the values and the indices, may be one memory.
function TestKeys:test_aliases()
  local x = int{2, 3, 1}
  x[x] = x
  equals(x:totable(), {1, 2, 3})
  x = int{2, 3, 1}
  x[x] = x[{{1, 3}}] * 1 + x -- the key is read before
  equals(x:totable(), {2, 4, 6})
  x = tensor{1, 2, 3, 4}
  x[int{1, 2, 3}] = x[{{2, 4}}]
  equals(x:totable(), {2, 3, 4, 4})
  x[{{2, 4}}][int{1, 2, 3}] = x[{{1, 3}}]
  equals(x:totable(), {2, 2, 3, 4})
  x[x:gt(2)] = x[{{1, 2}}]
  equals(x:totable(), {2, 2, 2, 2})
  local b = bool{true, false, true}
  b[b] = bool{false, true}
  equals(b:totable(), {false, false, true})
  b[b:logical_not()] = b[{{2, 3}}]
  equals(b:totable(), {false, true, true})
  b[b] = false
  equals(b:totable(), {false, false, false})
  local m = tensor.arange(9):reshape(3, 3)
  m[int{1, 2, 3}] = m:t()
  equals(m:totable(), {{1, 4, 7}, {2, 5, 8}, {3, 6, 9}})
  m:scatter_(1, int{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}}, m:t())
  equals(m:totable(), {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})
  local i = int{{2, 1}, {1, 2}}
  i:scatter_(1, i, i:t())
  equals(i:totable(), {{1, 1}, {2, 2}})
  m:put_(int{1, 2, 3, 4, 5, 6, 7, 8, 9}, m:t())
  equals(m:totable(), {{1, 4, 7}, {2, 5, 8}, {3, 6, 9}})
  m:index_copy_(1, int{3, 2, 1}, m)
  equals(m[1]:totable(), {3, 6, 9})
  m:masked_scatter_(m:gt(0), m:t())
  equals(m:totable(), {{3, 2, 1}, {6, 5, 4}, {9, 8, 7}})
end

function TestKeys:test_wrong()
  local x = tensor.zeros(2, 3)
  local function index(key) return function() return x[key] end end
  local function set(key, value) return function() x[key] = value end end
  raises("index: a tensor of indices must be of integers or bools, not of float32", index(x))
  raises("index: a mask of size 3 does not fit dimension 1 of a tensor of size 2x3",
         index(bool{true, false, true}))
  raises("index: a mask of size 2 does not fit dimension 2 of a tensor of size 2x3",
         index{{}, bool{true, false}})
  raises("index: 3 indices are too many for a tensor of size 2x3",
         index{x:gt(0), 1})
  raises("index: 1 indices are too many for a tensor of size ()",
         function() return tensor(1)[int{1}] end)
  raises("index: cannot broadcast 2 with 3: sizes 2 and 3 differ in dimension 1",
         index{int{1, 1}, int{1, 1, 1}})
  raises("index: a mask in a table must have dimensions: x[mask] takes one without",
         index{tensor(1):gt(0)})
  raises("index: 9 dimensions are too many: at most 8",
         index{{}, tensor.zeros(1, 1, 1, 1, 1, 1, 1, 1, {dtype = "int64"})})
  raises("index: cannot broadcast 2 to the size of the part written, 3x3",
         set(int{1, 1, 2}, tensor{1, 2}))
  raises("index: cannot broadcast 2x2 to what a mask of size 2 picks from 2x3",
         set(bool{true, false}, tensor{{1, 2}, {1, 2}}))
  raises("index: the value must be a number or a tensor, not string", set(int{1}, "a"))
  raises("index: an index is a tensor that has been closed", function()
    local closed = int{1}
    do local _ <close> = closed end
    return x[{closed}]
  end)
  equals(x:sum():item(), 0)
end

-- ---- functions ----

local INDEXED = {
  gather = {"def run(x, d, i):\n    r = np.empty(i.shape, x.dtype)\n" ..
            "    for p in np.ndindex(*i.shape):\n" ..
            "        q = list(p); q[d] = i[p]; r[p] = x[tuple(q)]\n    return r"},
  scatter = {"def run(x, d, i, v):\n    x = x.copy()\n    for p in np.ndindex(*i.shape):\n" ..
             "        q = list(p); q[d] = i[p]; x[tuple(q)] = v[p]\n    return x", values = true},
  scatter_add = {"def run(x, d, i, v):\n    x = x.copy()\n    for p in np.ndindex(*i.shape):\n" ..
                 "        q = list(p); q[d] = i[p]; x[tuple(q)] += v[p]\n    return x",
                 values = true},
}

TestElements = {}

for name, case in pairs(INDEXED) do
  TestElements["test_" .. name] = function()
    local batch = new_batch()
    batch.code[2] = case[1]
    for round = 1, ROUNDS do
      local shape, dtype = random_shape(1, 3, 4), one_of(DTYPES)
      local dim = random(#shape)
      if shape[dim] == 0 then shape[dim] = 3 end
      local index_shape, value_shape = {}, {}
      for d, size in ipairs(shape) do
        index_shape[d] = d == dim and random(5) or random(0, size)
        value_shape[d] = index_shape[d] + random(0, 1)
      end
      local x, text = operand(batch, shape, dtype)
      local index, index_text = indices(batch, index_shape, shape[dim])
      local given = random(2) == 1 and dim or dim - #shape - 1
      local what = ("%s, round %d"):format(name, round)
      if case.values then
        local value, value_text = operand(batch, value_shape, dtype)
        local expression = ("out(run(%s, %d, %s, %s))"):format(text, dim - 1, index_text,
                                                               value_text)
        if random(2) == 1 then
          batch.add(expression, tensor[name](x, given, index, value), what)
        else
          local y = own(x, random(2) == 1)
          equals(rawequal(y[name .. "_"](y, given, index, value), y), true)
          batch.add(expression, y, what)
        end
      else
        batch.add(("out(run(%s, %d, %s))"):format(text, dim - 1, index_text),
                  x[name](x, given, index), what)
      end
    end
    batch.compare()
  end
end

function TestElements:test_take_along_dim()
  local batch = new_batch()
  for round = 1, ROUNDS do
    local shape, dtype = random_shape(1, 3, 4), one_of(DTYPES)
    local dim = random(#shape)
    if shape[dim] == 0 then shape[dim] = 2 end
    local index_shape = {}
    for d, size in ipairs(shape) do
      index_shape[d] = d == dim and random(5) or random(3) == 1 and 1 or size
    end
    local x, text = operand(batch, shape, dtype)
    local index, index_text = indices(batch, index_shape, shape[dim])
    batch.add(("out(np.take_along_axis(%s, %s, %d))"):format(text, index_text, dim - 1),
              x:take_along_dim(index, dim), "round " .. round)
  end
  batch.compare()
  local x = tensor{{1, 2}, {3, 4}}
  equals(x:take_along_dim(int{{4}, {1}}):totable(), {4, 1})
  equals(x:t():take_along_dim(int{3}):totable(), {2})
  raises("take_along_dim: cannot broadcast 2x2 with 3x1 but for dimension 2",
         function() x:take_along_dim(int{{1}, {1}, {1}}, 2) end)
end

-- A number, or a tensor without dimensions, goes everywhere; tensors without dimensions have one
-- element along dimension 1.
function TestElements:test_scalars()
  equals(tensor.zeros(3):scatter_(1, int{1, 3}, 2):totable(), {2, 0, 2})
  equals(tensor.zeros(3):scatter_add_(1, int{1, 1}, tensor(2)):totable(), {4, 0, 0})
  equals(tensor(5):gather(1, int(1)).shape, {})
  equals(tensor(5):gather(1, int{1, 1}):totable(), {5, 5})
  equals(tensor(5):scatter(1, int(1), 7):item(), 7)
  equals(tensor(5):index_select(1, int{1, -1}):totable(), {5, 5})
  equals(tensor(5):take(int{{1}}):totable(), {{5}})
  equals(tensor(5):put_(int(1), tensor(8)):item(), 8)
  equals(tensor.zeros(3, {dtype = "bool"}):scatter_(1, int{2}, true):totable(),
         {false, true, false})
end

TestSlices = {}

local SLICED = {
  index_add = "x = %s\ns = [slice(None)] * x.ndim\ns[%d] = %s\nnp.add.at(x, tuple(s), %s)\nout(x)",
  index_copy = "x = %s\ns = [slice(None)] * x.ndim\ns[%d] = %s\nx[tuple(s)] = %s\nout(x)",
}

for name, code in pairs(SLICED) do
  TestSlices["test_" .. name] = function()
    local batch = new_batch()
    for round = 1, ROUNDS do
      local shape, dtype = random_shape(1, 3, 4), one_of(DTYPES)
      local dim = random(#shape)
      if shape[dim] == 0 then shape[dim] = 3 end
      local x, text = operand(batch, shape, dtype)
      local index, index_text = indices(batch, {random(0, 6)}, shape[dim])
      local value_shape = {table.unpack(shape)}
      value_shape[dim] = #index
      local value, value_text = operand(batch, value_shape, dtype)
      local y = random(2) == 1 and x[name](x, dim, index, value)
                or own(x, true)[name .. "_"](own(x, true), dim, index, value)
      batch.add(code:format(text, dim - 1, index_text, value_text), y,
                ("%s, round %d"):format(name, round))
    end
    batch.compare()
  end
end

function TestSlices:test_index_select_and_fill()
  local batch = new_batch()
  for round = 1, ROUNDS do
    local shape, dtype = random_shape(1, 4, 4), one_of(DTYPES)
    local dim = random(#shape)
    if shape[dim] == 0 then shape[dim] = 3 end
    local x, text = operand(batch, shape, dtype)
    local index, index_text = indices(batch, {random(0, 6)}, shape[dim])
    batch.add(("x = %s\ni = %s\nout(np.take(x, i, axis=%d))"):format(text, index_text, dim - 1),
              x:index_select(dim, index), "index_select, round " .. round)
    local y = own(x, random(2) == 1)
    y:index_fill_(dim - #shape - 1, index, 1)
    batch.add(("s = [slice(None)] * x.ndim\ns[%d] = i\nx[tuple(s)] = 1\nout(x)"):format(dim - 1),
              y, "index_fill_, round " .. round)
    batch.add("out(x)", x:index_fill(dim, index, 1), "index_fill, round " .. round)
  end
  batch.compare()
end

function TestSlices:test_wrong()
  local x = tensor.zeros(2, 3)
  raises("index_select: indices have one dimension, not 2",
         function() x:index_select(1, int{{1}}) end)
  raises("index_select: argument 3 must be a tensor of integers, not of float32",
         function() x:index_select(1, tensor{1}) end)
  raises("index_select: dimension 3 is out of range for a tensor of size 2x3",
         function() x:index_select(3, int{1}) end)
  raises("index_add_: cannot broadcast 2x2 to the size of the part written, 2x3",
         function() x:index_add_(1, int{1, 2}, tensor{{1, 2}, {3, 4}}) end)
  raises("index_fill_: the value has no dimensions, not 1",
         function() x:index_fill_(1, int{1}, tensor{1}) end)
  raises("index_add_: argument 4 must be a tensor, not number",
         function() x:index_add_(1, int{1}, 1) end)
  raises("gather: indices of size 1 along dimension 1 do not fit a tensor of size 2x3",
         function() x:gather(1, int{1}) end)
  raises("gather: indices of size 1x4 along dimension 1 do not fit a tensor of size 2x3",
         function() x:gather(1, int{{1, 1, 1, 1}}) end)
  raises("scatter_: values of size 1x2 do not fit indices of size 1x3",
         function() x:scatter_(1, int{{1, 1, 1}}, tensor{{1, 2}}) end)
  raises("scatter_: argument 4 must be a number or a tensor, not missing",
         function() x:scatter_(1, int{{1, 1, 1}}) end)
  raises("put_: 2 values are not for 1 indices", function() x:put_(int{1}, tensor{1, 2}) end)
  raises("masked_fill_: argument 2 must be a mask of bools, not a tensor of float32",
         function() x:masked_fill_(x, 1) end)
  raises("masked_fill_: cannot broadcast a mask of size 4x2x3 to the size of the tensor " ..
         "written, 2x3", function() x:masked_fill_(tensor.zeros(4, 2, 3, {dtype = "bool"}), 1) end)
  raises("masked_fill: the value has no dimensions, not 2",
         function() x:masked_fill(x:gt(0), x) end)
  raises("masked_select: cannot broadcast 2x3 with 2: sizes 3 and 2 differ in dimension 2",
         function() x:masked_select(bool{true, false}) end)
  equals(x:sum():item(), 0)
end

TestFlat = {}

function TestFlat:test_take_and_put()
  local batch = new_batch()
  for round = 1, ROUNDS do
    local shape, dtype = random_shape(0, 3, 4), one_of(DTYPES)
    for d = 1, #shape do shape[d] = math.max(shape[d], 1) end
    local index_shape, add = random_shape(0, 2, 4), random(2) == 1
    local x, text = operand(batch, shape, dtype)
    local index, index_text = indices(batch, index_shape, support.numel(shape))
    local value, value_text = operand(batch, {support.numel(index_shape)}, dtype)
    batch.add(("x = %s\ni = np.asarray(%s)\nout(np.take(x, i))"):format(text, index_text),
              x:take(index), "take, round " .. round)
    local y = random(2) == 1 and x:put(index, value, add)
              or own(x, random(2) == 1):put_(index, value, add)
    batch.add((add and "np.add.at(x.reshape(-1), i.ravel(), %s)\nout(x)"
               or "x.reshape(-1)[i.ravel()] = %s\nout(x)"):format(value_text), y,
              "put, round " .. round)
  end
  batch.compare()
end

TestMasks = {}

function TestMasks:test_functions()
  local batch = new_batch()
  for round = 1, ROUNDS do
    local shape, dtype = random_shape(0, 4, 4), one_of(DTYPES)
    local x, text = operand(batch, shape, dtype)
    local mask, mask_text = operand(batch, narrower(shape), "bool")
    local what = "round " .. round
    batch.add(("x = %s\nm = np.broadcast_to(%s, x.shape)\nout(x[m])"):format(text, mask_text),
              x:masked_select(mask), "masked_select, " .. what)
    batch.add("y = x.copy()\ny[m] = 1\nout(y)", x:masked_fill(mask, 1), "masked_fill, " .. what)
    batch.add("out(y)", own(x, random(2) == 1):masked_fill_(mask, tensor(1)),
              "masked_fill_, " .. what)
    local values, values_text = operand(batch, {support.numel(shape) + random(0, 2)}, dtype)
    batch.add(("y = x.copy()\ny[m] = %s[:m.sum()]\nout(y)"):format(values_text),
              own(x, random(2) == 1):masked_scatter_(mask, values), "masked_scatter_, " .. what)
    batch.add("out(y)", x:masked_scatter(mask, values), "masked_scatter, " .. what)
    batch.add("out(np.argwhere(x) + 1)", random(2) == 1 and x:nonzero() or x:argwhere(),
              "nonzero, " .. what)
  end
  batch.compare()
end

-- What is not in place broadcasts the tensor to the mask, too.
function TestMasks:test_broadcasting_the_tensor()
  local x, mask = tensor{1, 2}, bool{{true, false}, {false, true}}
  equals(x:masked_fill(mask, 9):totable(), {{9, 2}, {1, 9}})
  equals(x:masked_select(mask):totable(), {1, 2})
  equals(x:masked_scatter(mask, tensor{7, 8}):totable(), {{7, 2}, {1, 8}})
end

function TestMasks:test_nonzero_of_nan_and_zeros()
  equals(tensor{0 / 0, 0.0, -0.0, 1e-40}:nonzero():totable(), {{1}, {4}})
  equals(tensor(3):nonzero().shape, {1, 0})
  equals(tensor(0):nonzero().shape, {0, 0})
  equals(tensor.zeros(2, 0, 3):nonzero().shape, {0, 3})
  equals(tensor{1}:nonzero().dtype, "int64")
end

-- ---- large ones: many chunks and blocks ----

TestLarge = {}

-- Enough for several chunks.  Calls f for each number of threads: all must give the same tensors.
local function same_bits(f)
  local first
  support.each_thread_count(function()
    local results = f()
    first = first or results
    for i, x in ipairs(results) do equals(x == first[i], true, "result " .. i) end
  end)
  return first
end

local N = support.slow and 70000 or 300000

local function random_indices(n, size)
  return (tensor.rand(n) * size):ceil():to "int64"
end

function TestLarge:test_gathers()
  tensor.manual_seed(1)
  local x, index = tensor.randn(1000), random_indices(N, 1000)
  local wide, few = tensor.randn(3, N), int{3, -3, 2}
  local by_thread = same_bits(function()
    return {x[index], wide[few], wide:t()[{{}, few}], wide:take(index), x[{index * -1}]}
  end)
  local values, at, picked = x:totable(), index:totable(), by_thread[1]:totable()
  for i = 1, N, 97 do equals(picked[i], values[at[i]]) end
  equals(by_thread[2][2] == wide[1], true)
  equals(by_thread[3][{{}, 3}] == wide[2], true)
  equals(by_thread[4] == wide:reshape(-1)[index], true)
  local back = by_thread[5]:totable()
  for i = 1, N, 97 do equals(back[i], values[1001 - at[i]]) end
end

-- Sums in order, whatever the number of threads: they are not exact.
function TestLarge:test_scatter_add()
  tensor.manual_seed(2)
  local index, values = random_indices(N, 50), tensor.randn(N)
  local wide, rows = tensor.randn(N // 100, 100), random_indices(N // 100, 7)
  for _, dtype in ipairs {"float32", "float64", "float16"} do
    local sums = same_bits(function()
      return {tensor.zeros(50, {dtype = dtype}):scatter_add_(1, index, values:to(dtype)),
              tensor.zeros(7, 100, {dtype = dtype}):index_add_(1, rows, wide:to(dtype))}
    end)
    if dtype ~= "float16" then
      local expected, v, at = {}, values:to(dtype):totable(), index:totable()
      for i = 1, 50 do expected[i] = 0 end
      for i = 1, N do expected[at[i]] = support.round(dtype, expected[at[i]] + v[i]) end
      equals(sums[1]:totable(), expected)
      local column = 0
      local own_rows, w = rows:totable(), wide:to(dtype)[{{}, 100}]:totable()
      for i = 1, #own_rows do
        if own_rows[i] == 3 then column = support.round(dtype, column + w[i]) end
      end
      equals(sums[2][{3, 100}]:item(), column)
    end
  end
end

-- Of those that go to one place the last stays.
function TestLarge:test_scatter_duplicates()
  tensor.manual_seed(3)
  local index = random_indices(N, 50)
  local result = same_bits(function()
    local x = tensor.zeros(50, 2)
    x[index] = tensor.arange(2 * N):reshape(N, 2)
    return {x}
  end)[1]:totable()
  local last = {}
  for i, at in ipairs(index:totable()) do last[at] = i end
  for at, i in pairs(last) do equals(result[at], {2 * i - 1, 2 * i}) end
end

function TestLarge:test_masks()
  tensor.manual_seed(4)
  local x = tensor.randn(N // 100, 100)
  local rows, mask = tensor.randn(N // 100):gt(0.5), x:gt(1)
  local results = same_bits(function()
    local y, z, w = x:clone(), x:clone(), x:clone()
    y[mask] = x[mask] * 2
    z[rows] = x[rows] + 1
    w:t()[{{}, rows}] = -x[rows]:t()
    return {x[mask], x[rows], x:t()[{{}, rows}]:t(), mask:nonzero(), y, z, w, x:t()[mask:t()],
            x:masked_scatter(mask, tensor.arange(N))}
  end)
  local selected, flat, count = results[1]:totable(), support.flat(x), 0
  local numbers = support.flat(results[9])
  for i = 1, N do
    if flat[i] > 1 then
      count = count + 1
      if selected[count] ~= flat[i] then equals(selected[count], flat[i]) end
      if numbers[i] ~= count then equals(numbers[i], count) end
    elseif numbers[i] ~= flat[i] then
      equals(numbers[i], flat[i])
    end
  end
  equals(#selected, count)
  equals(results[2] == results[3], true)
  equals(results[4].shape, {count, 2})
  local at = results[4]
  equals(x[{at[{{}, 1}], at[{{}, 2}]}] == results[1], true)
  equals(results[5] == tensor.where(mask, x * 2, x), true)
  local whole = rows:reshape(-1, 1)
  equals(results[6] == tensor.where(whole, x + 1, x), true)
  equals(results[7] == tensor.where(whole, -x, x), true)
  equals(results[8].shape, {count})
end

-- Values that were left virtual are read and written all the same.
function TestLarge:test_virtual_values()
  tensor.manual_seed(5)
  local n = 40000
  local a, index = tensor.randn(n), random_indices(1000, n)
  local function run()
    local b = a * 2
    local c = b + 1
    local picked = b[index]
    b[index] = 7
    local d = c * 3
    d[d:gt(0)] = b[{{1, n}}][d:gt(0)]
    local e = b:masked_fill(c:gt(0), 1) + picked:sum()
    return {b, c, picked, d, e}
  end
  local fused = run()
  tensor.fusion(false)
  local plain = run()
  tensor.fusion(true)
  for i, x in ipairs(fused) do equals(x == plain[i], true, "value " .. i) end
  equals(fused[1][index] == tensor.full({1000}, 7), true)
end

-- ---- what waits ----

TestWaiting = {}

-- A function that reads a value cannot be traced; one that does not can be, and called again.
function TestWaiting:test_what_does_not_wait()
  local functions = {
    function(x, m) x[m] = 1 return x end,
    function(x, m) x[m] = tensor{4, 5} return x end,
    function(x, m) x[{m}] = x[int{1}] return x end,
    function(x, m) return x:masked_fill(m, 2) end,
    function(x, m) return x:masked_fill_(m, 2) end,
    function(x, m) return x:masked_scatter_(m, tensor{7, 8, 9}) end,
    function(x, _, i) return x[i] end,
    function(x, _, i) x[i] = tensor{5, 6} return x end,
    function(x, _, i) x[i] = 3 return x end,
    function(x, _, i) return x:index_put_(i, 3, true) end,
    function(x, _, i) return x:gather(1, i) end,
    function(x, _, i) return x:scatter_add_(1, i, tensor{5, 6}) end,
    function(x, _, i) return x:index_add(1, i, tensor{5, 6}) end,
    function(x, _, i) return x:take(i):put_(i:clone():fill_(1), tensor{1, 2}) end,
  }
  for n, f in ipairs(functions) do
    local compiled = tensor.compile(f)
    for _, case in ipairs {
      {{1, 2, 3}, {true, false, true}, {1, 3}}, {{4, 5, 6}, {false, true, true}, {-1, -1}},
    } do
      local function arguments() return tensor(case[1]), bool(case[2]), int(case[3]) end
      equals(compiled(arguments()):totable(), f(arguments()):totable(), "function " .. n)
    end
  end
end

function TestWaiting:test_what_waits()
  local text = "compile: %s: a function being traced has no values to read: return the tensor, " ..
               "read it outside"
  local x, m = tensor{1, 2}, bool{true, false}
  for name, f in pairs {
    index = function() return x[m] end, nonzero = function() return x:nonzero() end,
    masked_select = function() return x:masked_select(m) end,
    argwhere = function() return x:argwhere() end,
  } do
    raises(text:format(name), tensor.compile(f))
  end
end

-- An argument of a compiled function that is written in parts keeps the others.
function TestWaiting:test_compiled_scatter_writes_parts()
  local f = tensor.compile(function(x, i) x[i] = tensor{7, 8} end)
  for _ = 1, 2 do
    local x = tensor{1, 2} -- as many elements as are written, but one place
    f(x, int{2, 2})
    equals(x:totable(), {1, 8})
  end
  local g = tensor.compile(function(x, i, v) x[i] = v end)
  local x = int{2, 1}
  g(int{1, 2}, x, x)
  raises("compile: index: overlaps a tensor that is an argument and used in the function by " ..
         "itself too", function()
    local y = int{2, 1}
    tensor.compile(function(a) a[y] = a * 2 end)(y)
  end)
end

-- ---- indices out of range ----

TestRange = {}

local OUT = " is out of range for "

-- In a function, since a synchronous run raises at the call.
local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  equals(ok, false)
  return message:match "^[^:]+:%d+: (.-) %(queued at [^:]+:%d+%)$" or message
end

function TestRange:test_messages()
  local x = tensor.zeros(2, 3)
  local cases = {
    {function() return x[int{1, 7}] end, "index: index 7" .. OUT .. "dimension 1"},
    {function() return x[{{}, int{-4}}] end, "index: index -4" .. OUT .. "dimension 2"},
    {function() return x[{1, int{0}}] end, "index: index 0" .. OUT .. "dimension 2"},
    {function() return x[{int{1}, int{math.mininteger}}] end,
     "index: index -9223372036854775808" .. OUT .. "dimension 2"},
    {function() return x:index_select(1, int{math.maxinteger}) end,
     "index_select: index 9223372036854775807" .. OUT .. "dimension 1"},
    {function() return x:gather(2, int{{4}}) end, "gather: index 4" .. OUT .. "dimension 2"},
    {function() return x:clone():scatter_(1, int{{3}}, 1) end,
     "scatter_: index 3" .. OUT .. "dimension 1"},
    {function() return x:scatter_add(1, int{{-3}}, 1) end,
     "scatter_add: index -3" .. OUT .. "dimension 1"},
    {function() return x:index_fill(2, tensor({5}, {dtype = "uint8"}), 1) end,
     "index_fill: index 5" .. OUT .. "dimension 2"},
    {function() return x:take(int{7}) end, "take: index 7" .. OUT .. "the 6 elements"},
    {function() return x:put(int{-7}, tensor{1}) end, "put: index -7" .. OUT .. "the 6 elements"},
    {function() return x:take_along_dim(int{{9}}, 1) end,
     "take_along_dim: index 9" .. OUT .. "dimension 1"},
    {function() local y = x:clone() y[int{3}] = 1 return y end,
     "index: index 3" .. OUT .. "dimension 1"},
    {function() return x[{{1, 0}}][{{}, int{1, 5}}] + 1 end}, -- nothing is looked up
    {function() return tensor.zeros(0, 3)[int{1}] end,
     "index: index 1" .. OUT .. "dimension 1", "0x3"},
  }
  for i, case in ipairs(cases) do
    local function read() return case[1]():totable() end
    if case[2] then
      equals(message_of(read), case[2] .. " of a tensor of size " .. (case[3] or "2x3"), i)
    else
      read()
    end
  end
  equals(x:totable(), {{0, 0, 0}, {0, 0, 0}})
end

function TestRange:test_numbers_of_values()
  local x, mask = tensor{1, 2, 3}, bool{true, false, true}
  local function place(values)
    return function()
      local y = x:clone()
      y[mask] = tensor(values)
      return y:totable()
    end
  end
  equals(place{7, 8}(), {7, 2, 8})
  equals(message_of(place{7, 8, 9}), "index: 3 values for a mask with 2 true elements")
  equals(message_of(place{}), "index: 0 values for a mask with 2 true elements")
  equals(message_of(function() return x:masked_scatter(mask, tensor{1}):totable() end),
         "masked_scatter: 1 values for a mask with 2 true elements")
end

-- The failure stays with what was computed from it, and with what was to be written; nothing else
-- is touched.  Programs of their own, since a failure nobody asks for is told at the end.
function TestRange:test_stays()
  local status, out, err = support.run_script([[
    local x = tensor{1, 2, 3}
    local i = tensor({4}, {dtype = "int64"})
    local y = x[i]
    local z, other = y + 1, x * 2
    x[i] = 5
    local w = x + 1
    print(other:totable()[3])
    for _, t in ipairs {z, y, w, x, z} do print(pcall(t.item, t:sum())) end
    x:fill_(3)
    print(x:totable()[1])
    print(pcall(sync))
  ]], {SYNC = "0"})
  equals({status, err}, {0, ""})
  local text = "false\tSCRIPT:8: index: index 4 is out of range for dimension 1 of a tensor of " ..
               "size 3 (queued at SCRIPT:%d)\n"
  equals(out, "6.0\n" .. text:format(3):rep(2) .. text:format(5):rep(2) .. text:format(3) ..
              "3.0\ntrue\n")
end

function TestRange:test_told_at_the_end()
  local status, _, err = support.run_script([[
    local x = tensor.zeros(2)
    x:index_fill_(1, tensor({3}, {dtype = "int64"}), 1)
  ]])
  equals(status, 1)
  contains(err, "index_fill_: index 3 is out of range for dimension 1 of a tensor of size 2")
end

-- A mask whose values do not exist has no number of true elements either.
function TestRange:test_mask_that_failed()
  equals(message_of(function()
    local mask = tensor{1, 2}[int{3}]:gt(0)
    return tensor{1}[mask]
  end), "index: index 3 is out of range for dimension 1 of a tensor of size 2")
end

-- Failures have the name of what was called.
function TestRange:test_injected()
  for name, use in pairs {
    index = "y = x[i]", gather = "y = x:gather(1, i)", scatter_add_ = "y:scatter_add_(1, i, 1)",
    masked_scatter_ = "y:masked_scatter_(m, x)", masked_fill_ = "y:masked_fill_(m, 2)",
  } do
    local _, out = support.run_script(([[
      local x, y = tensor{1, 2}, tensor{3, 4}
      local i, m = tensor({1}, {dtype = "int64"}), tensor{1, 0}:gt(0)
      print(pcall(function()
        %s
        y:wait()
      end))
      y:fill_(1):wait()
    ]]):format(use), {FAULT = name .. ":1"})
    lu.assertStrMatches(out, "false\tSCRIPT:%d: " .. name ..
                             ": injected failure %(queued at SCRIPT:4%)\n")
  end
end

-- A finalizer that closes operands while a call makes its result.
function TestRange:test_hostile_finalizers()
  local use = {
    function(x, i) return x[i] end, function(x, i) x[i] = x end,
    function(x, _, m) return x[m] end, function(x, _, m) x[m] = tensor{1, 2} end,
    function(x, _, m) return x:masked_fill(m, 1) end,
    function(x, i) return x:scatter_add(1, i, x) end, function(x, i) return x:put_(i, x, true) end,
  }
  for n, f in ipairs(use) do
    for late = 0, support.slow and 3 or 20 do
      local x, i, m = tensor{1, 2}, int{2, 1}, bool{true, false}
      local victims = {x, i, m}
      setmetatable({}, {__gc = function()
        for _, victim in ipairs(victims) do local _ <close> = victim end
      end})
      for _ = 1, late do tensor(1):neg() end
      collectgarbage "step"
      local ok, message = pcall(function()
        local y = f(x, i, m)
        collectgarbage()
        return y and y:sum():item()
      end)
      if not ok and not message:find "closed" and not message:find "1 true elements" then
        error(("case %d: %s"):format(n, message))
      end
    end
  end
  sync()
end

-- A finalizer that changes a mask after its true elements have been counted.
function TestRange:test_mask_that_changes()
  if not support.under_gc then collectgarbage("incremental", 1, 1000, 8) end
  for round = 1, support.slow and 60 or 400 do
    local x, mask = tensor.ones(2000), tensor.rand(2000):gt(0.5)
    setmetatable({}, {__gc = function() mask:fill_(true) end})
    for _ = 1, round % 50 do local _ = {} end
    local ok, y = pcall(function() return x[mask]:sum():item() end)
    if ok then
      lu.assertTrue(y <= 2000)
    else
      contains(y, "index: a finalizer has changed the mask")
    end
  end
  if not support.under_gc then collectgarbage "generational" end
end

os.exit(lu.LuaUnit.run())
