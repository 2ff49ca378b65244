-- What the suites of functions along a dimension share: random tensors of every dtype and layout,
-- and NumPy as their oracle, asked once for many cases.

local luaunit = require "luaunit"
local support = require "support"

local M = {}

M.FLOATS = {"float32", "float64", "float16", "bfloat16"}
M.INTEGERS = {"int64", "int32", "int16", "int8", "uint8", "bool"}
M.DTYPES = table.move(M.INTEGERS, 1, #M.INTEGERS, #M.FLOATS + 1, {table.unpack(M.FLOATS)})

M.SHAPES = {{}, {1}, {5}, {49}, {300}, {7, 1}, {1, 6}, {3, 4}, {9, 20}, {2, 3, 4}, {3, 2, 1, 5}}
M.EMPTY = {{0}, {2, 0}, {0, 3}, {2, 0, 3}}

local function is_float(dtype) return dtype:find "float" ~= nil end

-- Small integers, so that there are many ties and sums are exact; with `special`, of floats nan,
-- infinities and -0 among them.
function M.data(dtype, count, special)
  local odd = {0 / 0, math.huge, -math.huge, -0.0, 0.0}
  local low, high = -4, 4
  if dtype == "bool" or dtype == "uint8" then low = 0 end
  if dtype == "bool" then high = 1 end
  local data = {}
  for i = 1, count do
    data[i] = math.random(low, high) + 0.0
    if special and is_float(dtype) and math.random(6) == 1 then data[i] = odd[math.random(#odd)] end
  end
  return data
end

-- Cases {dtype =, shape =, dim =, data =} over every dimension of some shapes.
function M.cases(dtypes, shapes, special)
  local list = {}
  for _, dtype in ipairs(dtypes) do
    for _, shape in ipairs(shapes) do
      for dim = 1, math.max(#shape, 1) do
        list[#list + 1] = {dtype = dtype, shape = shape, dim = dim,
                           data = M.data(dtype, support.numel(shape), special)}
      end
    end
  end
  return list
end

local function python_tuple(list)
  return "(" .. table.concat(list, ", ") .. (#list == 1 and ",)" or ")")
end

local PREAMBLE = [[
result, at = [], 0
def stable(x, dim, descending=False):
  if not descending: return np.argsort(x, axis=dim, kind="stable")
  order = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
  return np.flip(x.shape[dim] - 1 - order, dim)
def take(x, indices, dim): return np.take_along_axis(x, indices, dim)
def first(x, n, dim): return np.take(x, range(n), dim)
def lines(f, x, dim):
  moved = np.moveaxis(x, dim, -1)
  made = [f(line) for line in moved.reshape(-1, moved.shape[-1])]
  return np.moveaxis(np.array(made).reshape(moved.shape[:-1] + np.shape(made[0])), -1, dim)
%s
for dtype, shape, dim, k in cases:
  count = int(np.prod(shape))
  x = np.array(data[at:at + count]).astype("float32" if dtype == "bfloat16" else dtype)
  at += count
  for y in f(x.reshape(shape or (1,)), dim, k):
    y = np.asarray(y)
    if shape == () and y.size == 1: y = y.reshape(())
    result += [y.ndim, *y.shape, *y.astype("float64").ravel()]
]]

-- Asks that apply(x, dim, case) gives the tensors that the Python function f(x, dim, k) returns as
-- a list of arrays; its dim counts from 0, and k is the case's.  x is a tensor of the case's data
-- in any layout.  Without `ulps` the bits must agree; of a large result, the values.
function M.compare(cases, python, apply, ulps)
  local rows, data = {}, {}
  for i, case in ipairs(cases) do
    rows[i] = ("(%q, %s, %d, %s)"):format(case.dtype, python_tuple(case.shape), case.dim - 1,
                                          case.k or 0)
    table.move(case.data, 1, #case.data, #data + 1, data)
  end
  local code = "cases = [" .. table.concat(rows, ", ") .. "]\n" .. PREAMBLE:format(python)
  local expected = support.numpy(code, data)
  if not expected then luaunit.skip "no NumPy" end
  local at = 1
  for _, case in ipairs(cases) do
    local what = ("%s of %s along %d, k = %s"):format(case.dtype, support.shape_text(case.shape),
                                                      case.dim, case.k)
    local x = support.any_layout(case.shape, case.data, case.dtype)
    for i, t in ipairs {apply(x, case.dim, case)} do
      local ndim, shape, values = expected[at] // 1 | 0, {}, {}
      for d = 1, ndim do shape[d] = expected[at + d] // 1 | 0 end
      at = at + 1 + ndim
      for e = 1, support.numel(shape) do
        values[e] = expected[at]
        at = at + 1
      end
      local got = t.dtype == "bool" and t:to "float32" or t
      if #values > 1000 and not ulps then
        luaunit.assertTrue(support.tensor(shape, values, t.dtype) == got, what .. ", result " .. i)
      else
        support.assert_values(got, shape, values, what .. ", result " .. i, ulps)
      end
    end
  end
  luaunit.assertEquals(at, #expected + 1, "NumPy gave more results")
end

-- Asks that f(x) gives the same bits on any number of threads; f returns a list of tensors.
function M.same_on_threads(f)
  local first
  support.each_thread_count(function()
    local results = f()
    first = first or results
    for i, t in ipairs(results) do
      luaunit.assertTrue(t == first[i], "result " .. i)
    end
  end)
end

return M
