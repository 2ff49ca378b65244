-- Many small cases, each a Python expression over arrays, asked of NumPy in one run.

local luaunit = require "luaunit"
local support = require "support"

local M = {}
M.__index = M

function M.new() return setmetatable({data = {}, code = {}, cases = {}}, M) end

local function tuple(list) return #list == 1 and "(" .. list[1] .. ",)"
                                  or "(" .. table.concat(list, ",") .. ")" end
M.tuple = tuple

-- inputs: {shape, data} each, float64 arrays that the expression calls x, or a list `xs` of them.
function M:add(what, inputs, expression, got)
  local arrays = {}
  for i, input in ipairs(inputs) do
    arrays[i] = ("array(%d, %s)"):format(#self.data, tuple(input[1]))
    table.move(input[2], 1, #input[2], #self.data + 1, self.data)
  end
  self.code[#self.code + 1] = ("case([%s], lambda x, xs: %s)"):format(table.concat(arrays, ", "),
                                                                       expression)
  self.cases[#self.cases + 1] = {what = what, got = got}
end

-- What writing -7 to the view that the expression gives leaves in x.
function M:add_write(what, input, expression, got)
  self:add(what, {input}, ("written(x, lambda x: %s)"):format(expression), got)
end

local PRELUDE = [[
result = []
windows = np.lib.stride_tricks.sliding_window_view
def array(first, shape):
    return np.array(data[first:first + int(np.prod(shape))], dtype=np.float64).reshape(shape)
def written(x, f):
    x = x.copy()
    y = f(x)
    y.setflags(write=True)
    y[...] = -7
    return x
def case(xs, f):
    y = np.asarray(f(xs[0] if xs else None, xs))
    result.append(y.ndim)
    result.extend(y.shape)
    result.extend(y.ravel())
]]

-- Compares everything that was added, within `ulps`; the number of cases.
function M:check(ulps)
  local result = support.numpy(PRELUDE .. table.concat(self.code, "\n"), self.data)
  if not result then luaunit.skip "no NumPy" end
  local at = 1
  for _, case in ipairs(self.cases) do
    local ndim, shape = result[at], {}
    for d = 1, ndim do shape[d] = math.tointeger(result[at + d]) end
    at = at + 1 + math.tointeger(ndim)
    local count = support.numel(shape)
    local expected = table.move(result, at, at + count - 1, 1, {})
    for i = 1, count do expected[i] = support.round(case.got.dtype, expected[i]) end
    at = at + count
    support.assert_values(case.got, shape, expected, case.what, ulps)
  end
  luaunit.assertEquals(at, #result + 1)
  return #self.cases
end

-- A random shape of at most `most` dimensions, at least `least`; now and then one is 0 or 1.
function M.shape(least, most)
  local shape = {}
  for d = 1, math.random(least, most) do
    local kind = math.random(12)
    shape[d] = kind == 1 and 0 or kind <= 3 and 1 or math.random(2, 4)
  end
  return shape
end

local DTYPES = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8"}

-- An operand of that shape in any layout, of whole numbers that every dtype there has, and the
-- {shape, data} of it.
function M.operand(shape, dtype)
  dtype = dtype or math.random(2) == 1 and "float32" or DTYPES[math.random(#DTYPES)]
  if #shape > 0 and math.random(6) == 1 then -- repeated along its first dimension
    local row = {table.unpack(shape, 2)}
    local values, data = support.random_integers(support.numel(row), -99, 99), {}
    for _ = 1, shape[1] do table.move(values, 1, #values, #data + 1, data) end
    return support.tensor(row, values, dtype):expand(shape), {shape, data}
  end
  local data = support.random_integers(support.numel(shape), -99, 99)
  return support.any_layout(shape, data, dtype), {shape, data}
end

return M
