-- Scans: cumsum, cumprod, cummax, cummin, logcumsumexp and diff, with NumPy as oracle.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local along = require "along"
local equals, raises = lu.assertEquals, support.assert_raises

local huge, nan = math.huge, 0 / 0

TestScan = {}

-- Results are rounded once: NumPy accumulates in float64 here, too, and then rounds to the dtype.
local SUMS = [=[
def f(x, dim, k):
  wide = "float64" if x.dtype.kind == "f" else "int64"
  out = x.dtype if x.dtype.kind == "f" else "int64"
  y = x.astype(wide)
  return [(np.cumsum(y, dim) + 0).astype(out), (np.cumprod(y, dim) + 0).astype(out)]]=]

local function sums(x, dim, case)
  local total, product = x:cumsum(dim), x:cumprod(dim - math.max(#case.shape, 1) - 1)
  local expected = case.dtype:find "float" and case.dtype or "int64"
  equals({total.dtype, product.dtype}, {expected, expected})
  return total, product
end

function TestScan:test_sums()
  local shapes = {{}, {1}, {5}, {7, 1}, {1, 6}, {3, 4}, {2, 3, 4}, {3, 2, 1, 5}}
  local dtypes = {"float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8",
                  "bool"}
  along.compare(along.cases(dtypes, shapes, true), SUMS, sums, 0)
  along.compare(along.cases({"bfloat16"}, {{3, 5}}, false), [=[
def f(x, dim, k): return [np.cumsum(x, dim)]]=], function(x, dim) return x:cumsum(dim) end, 0)
end

function TestScan:test_rounding()
  local cases = {}
  for _, dtype in ipairs {"float32", "float64", "float16"} do
    for _, shape in ipairs {{2000}, {30, 40}, {3, 1100}} do
      for dim = 1, #shape do
        cases[#cases + 1] = {dtype = dtype, shape = shape, dim = dim,
                             data = support.random_data(support.numel(shape), -1.5, 1.5, dtype)}
      end
    end
  end
  along.compare(cases, SUMS, sums, 0)
  local small = tensor({1e-60, -1e-60}, {dtype = "float64"}) -- not even a float
  support.assert_values(small:to "float16", {2}, {0, -0.0})
end

-- Beyond what a float64 holds, and around.
function TestScan:test_integers_wrap_around()
  local x = tensor({math.maxinteger, 1, 1, -2}, {dtype = "int64"})
  equals(x:cumsum(1):totable(),
         {math.maxinteger, math.mininteger, math.mininteger + 1, math.maxinteger})
  equals(tensor({3037000500, 3037000500, 2}, {dtype = "int64"}):cumprod(1):totable(),
         {3037000500, 3037000500 * 3037000500, 3037000500 * 3037000500 * 2})
  equals(tensor({200, 100}, {dtype = "uint8"}):cumsum(1):totable(), {200, 300})
end

-- Of equal ones the last, as PyTorch says; once nan, always nan, with the place of the last one.
function TestScan:test_extremes()
  along.compare(along.cases(along.DTYPES, along.SHAPES, true), [=[
def extreme(better):
  def scan(line):
    made, best = [], 0
    for i, value in enumerate(line):
      if value != value or (line[best] == line[best] and better(value, line[best])): best = i
      made.append((line[best], best + 1))
    return made
  return scan
def f(x, dim, k):
  made = []
  for better in (lambda a, b: a >= b), (lambda a, b: a <= b):
    moved = np.moveaxis(x.astype("float64"), dim, -1)
    pairs = np.array([extreme(better)(line) for line in moved.reshape(-1, moved.shape[-1])])
    for i in 0, 1: made.append(np.moveaxis(pairs[:, :, i].reshape(moved.shape), -1, dim))
  return made]=],
    function(x, dim)
      local most, at = x:cummax(dim)
      local least, where = x:cummin(dim)
      equals({most.dtype, least.dtype, at.dtype}, {x.dtype, x.dtype, "int64"})
      return most, at, least, where
    end, 0)
end

function TestScan:test_logcumsumexp()
  local cases = along.cases({"float32", "float64"}, along.SHAPES, false)
  along.compare(cases, [=[
def f(x, dim, k):
  return [np.logaddexp.accumulate(x.astype("float64"), dim).astype(x.dtype)]]=],
    function(x, dim) return x:logcumsumexp(dim) end, 8)
  support.assert_values(tensor{-huge, -huge, 0, 1000, huge, huge}:logcumsumexp(1), {6},
                        {-huge, -huge, 0, 1000, huge, huge})
  support.assert_values(tensor{1, nan, 2}:logcumsumexp(1), {3}, {1, nan, nan})
  raises("logcumsumexp: wants a floating-point tensor, not int64: convert with :to()",
         tensor.logcumsumexp, tensor({1}, {dtype = "int64"}), 1)
end

function TestScan:test_diff()
  local cases = along.cases(along.DTYPES, {{5}, {300}, {7, 1}, {3, 4}, {2, 3, 4}}, false)
  for _, case in ipairs(cases) do case.k = math.random(0, 3) end
  along.compare(cases, [=[
def f(x, dim, k): return [np.diff(x, 1, dim), np.diff(x, k, dim), np.diff(x)]]=],
    function(x, dim, case) return x:diff(1, dim), x:diff(case.k, dim), x:diff() end, 0)
  raises("diff: dimension 3 is out of range for a tensor of size 1", tensor.diff, tensor{1},
         1, 3)
  raises("diff: a number has no differences: wants at least one dimension", tensor.diff, tensor(1))
end

function TestScan:test_in_place()
  local x = tensor{1, 2, 3}
  lu.assertIs(x:cumsum_(1), x)
  equals(x:totable(), {1, 3, 6})
  equals(tensor({2, 200}, {dtype = "uint8"}):cumprod_(-1):totable(), {2, 144})
end

function TestScan:test_long_lines()
  local n = support.slow and 20000 or 100000
  for _, dtype in ipairs {"float32", "float64", "int64", "int16"} do
    local x = tensor.ones(n, {dtype = dtype})
    local total = tensor.arange(n, {dtype = dtype == "int16" and "int64" or dtype})
    equals(x:cumsum(1) == total, true, dtype)
    equals(x:reshape(n, 1):cumsum(1):reshape(n) == total, true, dtype)
    local wide = (tensor.zeros(n // 10, 10) + x[1]):to(dtype)
    equals(wide:cumsum(1)[{{}, 7}] == total[{{1, n // 10}}], true, dtype)
    equals(wide:t():cumsum(2)[4] == total[{{1, n // 10}}], true, dtype)
    local most, at = x:cummax(1)
    equals(most == x and at == tensor.arange(n, {dtype = "int64"}), true, dtype)
  end
end

function TestScan:test_empty()
  for _, shape in ipairs(along.EMPTY) do
    local x = tensor.zeros(shape, {dtype = "int32"})
    for dim = 1, #shape do
      equals(x:cumsum(dim).shape, shape)
      local most, at = x:cummax(dim)
      equals({most.shape, at.shape}, {shape, shape})
    end
  end
end

function TestScan:test_same_on_threads()
  tensor.manual_seed(9)
  local n = support.slow and 20000 or 200000
  local x = tensor.randn(n)
  along.same_on_threads(function()
    local results = {x:cumsum(1), x:cummax(1)}
    for _, y in ipairs {x:reshape(n // 100, 100), x:reshape(100, n // 100), x:reshape(n, 1)} do
      for dim = 1, 2 do
        results[#results + 1] = y:cumsum(dim)
        results[#results + 1], results[#results + 2] = y:cummin(dim)
      end
    end
    return results
  end)
end

function TestScan:test_errors()
  local x = tensor.ones(2, 3)
  for _, name in ipairs {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"} do
    local f = tensor[name]
    raises(name .. ": dimension 3 is out of range for a tensor of size 2x3", f, x, 3)
    raises(name .. ": argument 2 must be an integer, not missing", f, x)
    raises(name .. ": 3 arguments are too many: at most 2", f, x, 1, 1)
  end
end

os.exit(lu.LuaUnit.run())
