-- sum, mean, max and min: of everything and along one dimension, in every layout; accuracy, nan,
-- nothing to reduce, and the same bits on any number of threads.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

local huge, nan = math.huge, 0 / 0
local DTYPES = {"float32", "float64"}

local function fold(start, f)
  return function(list)
    local result = start
    for i = 1, #list do result = f(result, list[i]) end
    return result
  end
end

local function with_nan(pick)
  return function(x, y) return (x ~= x or y ~= y) and nan or pick(x, y) end
end

local sum = fold(0.0, function(x, y) return x + y end)
local REDUCTIONS = {
  sum = sum,
  mean = function(list) return sum(list) / #list end,
  max = fold(-huge, with_nan(math.max)),
  min = fold(huge, with_nan(math.min)),
}

-- The lists that a reduction along `dim` makes of a flat list, in the order of the result.
local function split(shape, data, dim)
  local inner, outer = 1, 1
  for d = 1, #shape do
    if d < dim then outer = outer * shape[d] elseif d > dim then inner = inner * shape[d] end
  end
  local lists = {}
  for o = 0, outer - 1 do
    for i = 1, inner do
      local list = {}
      for k = 0, shape[dim] - 1 do list[k + 1] = data[(o * shape[dim] + k) * inner + i] end
      lists[#lists + 1] = list
    end
  end
  return lists
end

local function without(shape, dim, kept)
  local rest = {table.unpack(shape)}
  if kept then rest[dim] = 1 else table.remove(rest, dim) end
  return rest
end

TestValues = {}

-- Small integers: sums are exact in any order, and a mean is the rounded quotient.
function TestValues:test_all_layouts_and_dimensions()
  local shapes = {{}, {1}, {5}, {3, 4}, {4, 1, 3}, {2, 3, 4}, {2, 1, 3, 5}, {67}, {33, 5}, {5, 33}}
  for _, dtype in ipairs(DTYPES) do
    for _, shape in ipairs(shapes) do
      local data = support.random_integers(support.numel(shape), -9, 9)
      for _, layout in ipairs(support.layouts(shape, data, dtype)) do
        local x = layout[2]
        for name, f in pairs(REDUCTIONS) do
          local what = ("%s of %s %s %s"):format(name, support.shape_text(shape), dtype, layout[1])
          support.assert_values(x[name](x), {}, {support.round(dtype, f(data))}, what, 0)
          for dim = 1, #shape do
            local expected = {}
            for i, list in ipairs(split(shape, data, dim)) do
              expected[i] = support.round(dtype, f(list))
            end
            what = what .. " along " .. dim
            support.assert_values(x[name](x, dim), without(shape, dim), expected, what, 0)
            support.assert_values(x[name](x, dim - #shape - 1), without(shape, dim), expected,
                                  what, 0)
            support.assert_values(x[name](x, dim, true), without(shape, dim, true), expected,
                                  what, 0)
            support.assert_values(x[name](x, dim, false), without(shape, dim), expected, what, 0)
          end
        end
      end
    end
  end
end

function TestValues:test_wide_dimensions()
  local x = tensor.arange(24):reshape(2, 3, 4):transpose(1, 3)
  equals(x:sum(1):totable(), {{10, 58}, {26, 74}, {42, 90}})
  equals(x:sum(3):totable(), {{14, 22, 30}, {16, 24, 32}, {18, 26, 34}, {20, 28, 36}})
  equals(x:max(2, true):totable(), {{{9, 21}}, {{10, 22}}, {{11, 23}}, {{12, 24}}})
  equals(tensor.ones(2, 2, 2, 2, 2, 2, 2, 2):sum(4):sum():item(), 256)
  equals(x:sum():dim(), 0)
end

function TestValues:test_empty()
  local x = tensor.zeros(2, 0)
  equals(x:sum():item(), 0)
  lu.assertIsNaN(x:mean():item())
  equals(x:sum(2):totable(), {0, 0})
  equals(x:sum(1).shape, {0})
  equals(x:sum(1, true).shape, {1, 0})
  lu.assertIsNaN(x:mean(2)[2]:item())
  equals(x:max(1).shape, {0})
  raises("max: a tensor of size 2x0 has no elements to choose from", tensor.max, x)
  raises("min: a tensor of size 2x0 has no elements to choose from", tensor.min, x, 2)
  raises("max: a tensor of size 0 has no elements to choose from", tensor.max, tensor{})
end

function TestValues:test_special_values()
  for _, place in ipairs {1, 7, 40, 65, 100} do
    local x = tensor.arange(100)
    x[place] = nan
    for name in pairs(REDUCTIONS) do
      lu.assertIsNaN(x[name](x):item(), name)
      lu.assertIsNaN(x[name](x:reshape(1, 100), 2)[1]:item(), name)
      lu.assertIsNaN(x[name](x:reshape(100, 1), 1)[1]:item(), name)
    end
    local wide = tensor.ones(100, 3)
    wide[{place, 2}] = nan
    support.assert_values(wide:max(1), {3}, {1, nan, 1})
    support.assert_values(wide:sum(1), {3}, {100, nan, 100})
  end
  equals(tensor{1, huge}:sum():item(), huge)
  equals(tensor{-huge, 1}:min():item(), -huge)
  equals(tensor{-huge, -huge}:max():item(), -huge)
  equals(tensor{huge, huge}:min():item(), huge)
  lu.assertIsNaN(tensor{huge, -huge}:sum():item())
  equals(tensor{-3, -5}:max():item(), -3)
  equals(tensor.full({1000}, -7):max():item(), -7)
  equals(tensor.full({1000}, 7):min():item(), 7)
end

TestAccuracy = {}

function TestAccuracy:test_sums()
  local n = support.slow and 100000 or 1000000
  for _, value in ipairs {0.1, 1 / 3, 12345.678} do
    local exact = support.round("float32", value) * n
    local x = tensor.full({n}, value)
    lu.assertAlmostEquals(x:sum():item() / exact, 1, 1e-6)
    lu.assertAlmostEquals(x:mean():item() / (exact / n), 1, 1e-6)
    lu.assertAlmostEquals(x:reshape(1, n):sum(2)[1]:item() / exact, 1, 1e-6)
    lu.assertAlmostEquals(x:reshape(n, 1):sum(1)[1]:item() / exact, 1, 1e-6)
    lu.assertAlmostEquals(x:reshape(n // 4, 4):sum(1)[3]:item() / (exact / 4), 1, 1e-6)
    lu.assertAlmostEquals(x:to("float64"):sum():item() / exact, 1, 1e-13)
  end
end

function TestAccuracy:test_mean_does_not_overflow_on_the_way()
  local x = tensor.full({1000}, 1e37)
  lu.assertAlmostEquals(x:mean():item() / 1e37, 1, 1e-6)
end

TestLarge = {}

local function integers(n, m, dtype)
  local x = tensor.arange(0, n * m - 1, {dtype = "float64"})
  return ((x * 7919 % 10007) % 19 - 9):reshape(n, m):to(dtype)
end

function TestLarge:test_several_shapes()
  local shapes = support.slow and {{3, 70000}}
    or {{1, 300000}, {3, 70001}, {70001, 3}, {700, 701}, {65536, 2}, {2, 65537}, {1000003, 1}}
  for _, dtype in ipairs(DTYPES) do
    for _, shape in ipairs(shapes) do
      local n, m = shape[1], shape[2]
      local x = integers(n, m, dtype)
      local total = x:to("float64"):sum():item()
      local what = ("%dx%d %s"):format(n, m, dtype)
      equals(x:sum():item(), total, what)
      equals(x:t():sum():item(), total, what)
      equals(x:sum(1):sum():item(), total, what)
      equals(x:sum(2):sum():item(), total, what)
      equals(x:t():sum(1) == x:sum(2), true, what)
      equals(x:t():sum(2) == x:sum(1), true, what)
      equals(x:max(1):max():item(), x:max():item(), what)
      equals(x:min(2):min():item(), x:min():item(), what)
      equals(x:max():item(), 9, what)
      equals(x:min():item(), -9, what)
      local row = support.flat(x[-1])
      equals(x:sum(2)[-1]:item(), sum(row), what)
      if n > 1 then -- every other row, and the rest
        equals(x[{{1, n, 2}}]:sum():item() + x[{{2, n, 2}}]:sum():item(), total, what)
      end
    end
  end
end

function TestLarge:test_extremes_are_found_anywhere()
  local n = 200001
  for _, place in ipairs {1, 2, 4095, 65536, 65537, 131072, 200000, 200001} do
    local x = tensor.zeros(n)
    x[place] = 5
    equals(x:max():item(), 5)
    equals((-x):min():item(), -5)
    equals(x:sum():item(), 5)
  end
end

function TestLarge:test_same_bits_on_any_number_of_threads()
  local n = support.slow and 40000 or 400000
  tensor.manual_seed(11)
  local x = tensor.randn(n + 7)
  local wide, tall = x[{{1, n}}]:reshape(8, n // 8), x[{{1, n}}]:reshape(n // 8, 8)
  local first
  support.each_thread_count(function()
    local results = {}
    for _, name in ipairs {"sum", "mean", "max", "min"} do
      for _, y in ipairs {x, wide, tall, wide:t(), x[{{1, n, 3}}], x:to("float64")} do
        results[#results + 1] = y[name](y)
        for dim = 1, y.ndim do results[#results + 1] = y[name](y, dim) end
      end
    end
    first = first or results
    for i = 1, #results do lu.assertTrue(results[i] == first[i], i) end
  end)
end

TestErrors = {}

function TestErrors:test_arguments()
  local x = tensor.ones(2, 3)
  for name in pairs(REDUCTIONS) do
    local f = tensor[name]
    raises(name .. ": dimension 3 is out of range for a tensor of size 2x3", f, x, 3)
    raises(name .. ": dimension 0 is out of range for a tensor of size 2x3", f, x, 0)
    raises(name .. ": dimension -3 is out of range for a tensor of size 2x3", f, x, -3)
    raises(name .. ": argument 2 must be an integer, not 1.5", f, x, 1.5)
    raises(name .. ": argument 2 must be an integer, not string", f, x, "1")
    raises(name .. ": keepdim must be true or false, not number", f, x, 1, 1)
    raises(name .. ": 4 arguments are too many: at most 3", f, x, 1, true, 1)
    raises(name .. ": argument 1 must be a tensor, not table", f, {1})
  end
end

-- What cannot be meant is told, not ignored.
function TestErrors:test_zero_dimensional()
  local x = tensor(3)
  for name in pairs(REDUCTIONS) do
    lu.assertFalse(pcall(tensor[name], x, "a"), name .. " takes any dimension of a number")
    lu.assertFalse(pcall(tensor[name], x, 5), name .. " takes any dimension of a number")
  end
end

function TestErrors:test_keepdim_of_all()
  local ok, x = pcall(tensor.sum, tensor.ones(2, 3), nil, true)
  lu.assertTrue(not ok or #x.shape == 2, "keepdim is ignored when all dimensions are reduced")
end

os.exit(lu.LuaUnit.run())
