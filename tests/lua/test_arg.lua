-- argmax, argmin; max and min along a dimension; counting: bincount, histc, one_hot.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local along = require "along"
local equals, raises = lu.assertEquals, support.assert_raises

local nan = 0 / 0

TestArg = {}

function TestArg:test_along_dimensions()
  local cases = along.cases(along.DTYPES, along.SHAPES, true)
  along.compare(cases, [=[
def f(x, dim, k):
  most, least = np.argmax(x, dim), np.argmin(x, dim)
  return [most + 1, least + 1, np.expand_dims(most, dim) + 1]]=],
    function(x, dim, case)
      local kept = x:argmax(dim, true)
      equals(kept.dtype, "int64")
      if #case.shape == 0 then equals(kept.shape, {}) end
      return x:argmax(dim), x:argmin(dim - math.max(#case.shape, 1) - 1), kept
    end)
end

-- With the value that stands there: 0 where -0 is not first.
function TestArg:test_max_and_min()
  local cases = along.cases(along.DTYPES, along.SHAPES, true)
  along.compare(cases, [=[
def f(x, dim, k):
  most = np.expand_dims(np.argmax(x, dim), dim)
  least = np.expand_dims(np.argmin(x, dim), dim)
  return [np.squeeze(take(x, most, dim), dim), np.squeeze(most, dim) + 1,
          take(x, least, dim), least + 1]]=],
    function(x, dim)
      local most, at = x:max(dim)
      equals({most.dtype, at.dtype}, {x.dtype, "int64"})
      local least, where = x:min(dim, true)
      return most, at, least, where
    end)
end

function TestArg:test_of_all()
  local cases = along.cases(along.DTYPES, along.SHAPES, true)
  along.compare(cases, [=[
def f(x, dim, k): return [np.argmax(x) + 1, np.argmin(x) + 1]]=],
    function(x)
      local ones = {}
      for d = 1, x.ndim do ones[d] = 1 end
      equals(x:argmax(nil, true).shape, ones)
      return x:argmax(), x:argmin()
    end)
  equals(select("#", tensor{1}:max()), 1)
end

function TestArg:test_empty()
  local x = tensor.zeros(2, 0)
  equals(x:argmax(1).shape, {0})
  equals(x:max(1, true).shape, {1, 0})
  raises("argmax: a tensor of size 2x0 has no elements to choose from", tensor.argmax, x)
  raises("argmin: a tensor of size 2x0 has no elements to choose from", tensor.argmin, x, 2)
  raises("max: a tensor of size 2x0 has no elements to choose from", tensor.max, x, 2)
end

-- The first of equal ones, whichever part of a line it is in, and however lines lie.
function TestArg:test_long_lines()
  local n = support.slow and 140000 or 400000
  for _, dtype in ipairs {"float32", "float64", "int64", "int16", "bfloat16"} do
    local x = tensor.zeros(n, {dtype = dtype})
    for _, at in ipairs {n, 131073, 131072, 70000, 65537, 4097, 1} do
      x[at] = 1
      equals(x:argmax():item(), at)
      equals(x:reshape(n, 1):argmax(1)[1]:item(), at)
    end
    x = tensor.zeros(n // 8, 8, {dtype = dtype})
    for _, at in ipairs {n // 8, 16384, 16383, 1} do
      x[{at, 3}] = -1
      equals(x:argmin(1):totable(), {1, 1, at, 1, 1, 1, 1, 1})
      equals(x:t():argmin(2):totable(), {1, 1, at, 1, 1, 1, 1, 1})
    end
  end
  local x = tensor.zeros(n)
  x[n], x[100000] = nan, nan
  equals(x:argmax():item(), 100000)
  equals(x:argmin():item(), 100000)
  local value, at = x:max(1)
  lu.assertIsNaN(value:item())
  equals(at:item(), 100000)
end

function TestArg:test_same_on_threads()
  tensor.manual_seed(5)
  local n = support.slow and 20000 or 100000
  local x = (tensor.randn(n * 4) * 50):round()
  along.same_on_threads(function()
    local results = {x:argmax(), x:argmin()}
    for _, y in ipairs {x:reshape(4, n), x:reshape(n, 4), x:reshape(n // 100, 400)} do
      for _, z in ipairs {y, y:t()} do
        for dim = 1, 2 do
          local value, at = z:max(dim)
          table.move({value, at, z:argmin(dim)}, 1, 3, #results + 1, results)
        end
      end
    end
    return results
  end)
end

-- max along a dimension was fused as a reduction of one result; that of all still may be.
function TestArg:test_after_other_operations()
  local x, y = tensor.arange(40000), tensor.arange(40000)
  local value, at = (x * -1 + y * 2):reshape(2, 20000):max(2)
  equals(value:totable(), {20000, 40000})
  equals(at:totable(), {20000, 20000})
  equals((x * 2 + 1):max():item(), 80001)
end

function TestArg:test_compiled()
  local f = tensor.compile(function(x)
    local value, at = x:max(1)
    return value * 2, at
  end)
  for i = 1, 3 do
    local value, at = f(tensor{i, 7, 3})
    equals({value:item(), at:item()}, {14, 2})
  end
end

function TestArg:test_errors()
  local x = tensor.ones(2, 3)
  for _, name in ipairs {"argmax", "argmin", "max", "min"} do
    local f = tensor[name]
    raises(name .. ": dimension 3 is out of range for a tensor of size 2x3", f, x, 3)
    raises(name .. ": argument 2 must be an integer, not table", f, x, {1})
    raises(name .. ": keepdim must be true or false, not number", f, x, 1, 1)
    raises(name .. ": 4 arguments are too many: at most 3", f, x, 1, true, 1)
  end
end

-- Failures reach both results.
function TestArg:test_failures()
  local status, out, err = support.run_script([[
    local value, at = tensor.ones(3):max(1)
    print(pcall(value.item, value))
    print(pcall(at.item, at))
    print(tensor.ones(3):argmax():item())]], {FAULT = "max:1"})
  equals({status, err}, {0, ""})
  local line = "false\tmax: injected failure (queued at SCRIPT:1)\n"
  equals((out:gsub("SCRIPT:%d+: ", "")), line .. line .. "1\n")
end

TestCount = {}

local function integers(list, dtype) return tensor(list, {dtype = dtype or "int64"}) end

function TestCount:test_bincount()
  local cases = {}
  for _, dtype in ipairs {"int64", "int32", "int16", "int8", "uint8"} do
    for _, n in ipairs {1, 7, 3000} do
      local data = support.random_integers(n, 1, 40)
      cases[#cases + 1] = {dtype = dtype, shape = {n}, dim = 1, data = data, k = math.random(0, 60)}
    end
  end
  along.compare(cases, [=[
def f(x, dim, k):
  x = x.astype("int64")
  return [np.bincount(x - 1), np.bincount(x - 1, minlength=k), np.bincount(x - 1, x / 4),
          np.bincount(x - 1, x / 4, k)]]=],
    function(x, _, case)
      local weights = x / 4
      equals(x:bincount(weights).dtype, "float32")
      equals(x:bincount(weights:to "float64").dtype, "float64")
      return x:bincount(), x:bincount{minlength = case.k}, x:bincount{weights = weights},
             x:bincount(weights:to "float64", case.k)
    end)
  equals(integers{}:bincount().shape, {0})
  equals(integers{}:bincount{minlength = 2}:totable(), {0, 0})
  equals(integers({2, 1}):bincount(integers{5, 7}):totable(), {7, 5})
end

function TestCount:test_bincount_refuses()
  local x = integers{1, 2}
  raises("bincount: wants a tensor of integers, not float32", tensor.bincount, tensor{1})
  raises("bincount: wants one dimension, not a tensor of size 1x2", tensor.bincount,
         integers{{1, 2}})
  raises("bincount: weights of size 3 are not for a tensor of size 2", tensor.bincount, x,
         tensor{1, 2, 3})
  raises("bincount: minlength -1 is negative", tensor.bincount, x, {minlength = -1})
  raises("bincount: unknown option 'min': weights or minlength", tensor.bincount, x, {min = 1})
  lu.assertErrorMsgContains("bincount: 0 is not the index of a bin from 1 to 2 (queued at",
                            function() return integers{1, 0, 2}:bincount() end)
  lu.assertErrorMsgContains("bincount: out of memory: ",
                            function() return integers{1 << 50}:bincount() end)
end

function TestCount:test_histc()
  local cases = {}
  for _, dtype in ipairs(along.FLOATS) do
    for _, n in ipairs {1, 9, dtype == "bfloat16" and 200 or 3000} do -- it has 8 bits
      for _, k in ipairs {1, 4, 8} do
        local data = support.random_integers(n, -9, 9)
        cases[#cases + 1] = {dtype = dtype, shape = {n}, dim = 1, data = data, k = k}
      end
    end
  end
  along.compare(cases, [=[
def f(x, dim, k):
  low, high = x.min(), x.max()
  if low == high: low, high = low - 1, high + 1
  return [np.histogram(x, k, (-4, 4))[0], np.histogram(x, k, (low, high))[0]]]=],
    function(x, _, case)
      equals(x:histc(3).dtype, case.dtype)
      return x:histc(case.k, -4, 4), x:histc(case.k)
    end)
  equals(tensor.zeros(0):histc(2):totable(), {0, 0})
  equals(tensor(3):histc(2):totable(), {0, 1})
  equals(tensor{1, nan, 5}:histc(2, 0, 2):totable(), {0, 1})
  equals(#tensor{1}:histc(), 100)
  raises("histc: 0 bins are too few: at least 1", tensor.histc, tensor{1}, 0)
  raises("histc: cannot make bins from 2.0 to 1.0", tensor.histc, tensor{1}, 4, 2, 1)
  raises("histc: wants a floating-point tensor, not int64: convert with :to()", tensor.histc,
         integers{1})
  lu.assertErrorMsgContains("histc: the values are not all finite: give the range of the bins " ..
                            "(queued at ", function() return tensor{1, nan}:histc(2):wait() end)
end

function TestCount:test_one_hot()
  local x = integers{{1, 3}, {2, 3}}
  local expected = {{{1, 0, 0}, {0, 0, 1}}, {{0, 1, 0}, {0, 0, 1}}}
  equals(x:one_hot():totable(), expected)
  equals(x:one_hot(3):totable(), expected)
  equals(x:t():one_hot(4)[{1, 2}]:totable(), {0, 1, 0, 0})
  equals(x:one_hot(5).shape, {2, 2, 5})
  equals(x:one_hot().dtype, "int64")
  equals(integers(2, "uint8"):one_hot(3):totable(), {0, 1, 0})
  equals(tensor.zeros(0, 2, {dtype = "int64"}):one_hot(3).shape, {0, 2, 3})
  local many = (tensor.arange(30000, {dtype = "int64"}) * 7) % 5 + 1
  equals(many:one_hot(5):argmax(2) == many, true)
  lu.assertErrorMsgContains("one_hot: 9 is not a class from 1 to 3 (queued at ",
                            function() return integers{1, 9}:one_hot(3):wait() end)
  raises("one_hot: wants a tensor of integers, not float32", tensor.one_hot, tensor{1})
  raises("one_hot: 0 classes are too few: at least 1", tensor.one_hot, x, 0)
  raises("one_hot: there is no class in the tensor: give their number", tensor.one_hot,
         integers{})
end

function TestCount:test_count_nonzero()
  along.compare(along.cases(along.DTYPES, along.SHAPES, true), [=[
def f(x, dim, k): return [np.count_nonzero(x), np.count_nonzero(x, dim)]]=],
    function(x, dim) return x:count_nonzero(), x:count_nonzero(dim) end)
  equals(tensor.ones(2, 3, 4):count_nonzero({1, 3}):totable(), {8, 8, 8})
end

os.exit(lu.LuaUnit.run())
