-- What the suites of indexing share: random operands with their values as Python text, and NumPy as
-- the oracle of many cases at a time.

local lu = require "luaunit"
local support = require "support"
local equals, random = lu.assertEquals, math.random

local M = {}

M.rounds = support.slow and 8 or 120 -- random cases of each kind

function M.int(data) return tensor(data, {dtype = "int64"}) end
function M.bool(data) return tensor(data, {dtype = "bool"}) end

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
function M.new_batch()
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

M.dtypes = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
            "bool"}
local INDEX_DTYPES = {"int64", "int64", "int32", "int16", "int8", "uint8"}

function M.one_of(list) return list[random(#list)] end

function M.random_shape(least, most, largest)
  local shape = {}
  for d = 1, random(least, most) do shape[d] = random(20) == 1 and 0 or random(largest) end
  return shape
end

local function random_values(count, dtype)
  local low = (dtype == "uint8" or dtype == "bool") and 0 or -9
  return support.random_integers(count, low, dtype == "bool" and 1 or 9)
end

-- A tensor, and Python text for its values.
function M.operand(batch, shape, dtype)
  local values = random_values(support.numel(shape), dtype)
  return support.any_layout(shape, values, dtype), batch.array(shape, values, dtype)
end

-- Indices into a dimension, and Python text for them, from 0.
function M.indices(batch, shape, size)
  local dtype, values = M.one_of(INDEX_DTYPES), {}
  local signed = dtype ~= "uint8"
  for i = 1, support.numel(shape) do
    values[i] = signed and random(2) == 1 and -random(size) or random(size)
  end
  local index = support.any_layout(shape, values, dtype)
  if #shape == 0 then return index, tostring(values[1] > 0 and values[1] - 1 or values[1]) end
  return index, ("ix(%s, %d)"):format(batch.array(shape, values, "int64"), size)
end

-- A copy with no other handle on its memory, to be written to.
function M.own(x, layout)
  local y = x:clone()
  if layout and x.ndim > 1 then
    local n = x.ndim
    y = x:transpose(n - 1, n):clone():transpose(n - 1, n)
  end
  return y
end

-- The shape of a value that broadcasts to a shape.
function M.narrower(shape)
  local own_shape = {}
  for d = random(#shape + 1), #shape do
    own_shape[#own_shape + 1] = random(4) == 1 and 1 or shape[d]
  end
  return own_shape
end

return M
