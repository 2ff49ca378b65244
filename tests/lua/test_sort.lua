-- Sorting and what follows from it: sort, argsort, topk, median, kthvalue, mode, quantile, unique,
-- searchsorted and isin, with NumPy as oracle.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local along = require "along"
local equals, raises = lu.assertEquals, support.assert_raises

local huge, nan = math.huge, 0 / 0

local function integers(list, dtype) return tensor(list, {dtype = dtype or "int64"}) end

TestSort = {}

-- Bits are compared, so that which of 0 and -0 comes first, and which nan, is too.
function TestSort:test_sort()
  local cases = along.cases(along.DTYPES, along.SHAPES, true)
  along.compare(cases, [=[
def f(x, dim, k):
  up, down = stable(x, dim), stable(x, dim, True)
  return [take(x, up, dim), up + 1, take(x, down, dim), down + 1, up + 1, down + 1]]=],
    function(x, dim, case)
      local value, at = x:sort(dim)
      equals({value.dtype, at.dtype}, {case.dtype, "int64"})
      local falling, where = x:sort(dim - math.max(x.ndim, 1) - 1, true)
      return value, at, falling, where, x:argsort(dim, false, true),
             x:argsort(dim, {descending = true, stable = true})
    end)
end

function TestSort:test_usual_dimension()
  along.compare(along.cases({"float32", "int8"}, along.SHAPES, true), [=[
def f(x, dim, k):
  last = stable(x, x.ndim - 1)
  return [take(x, last, x.ndim - 1), last + 1, last + 1, np.sort(x, 0, kind="stable")]]=],
    function(x)
      local value, at = x:sort()
      return value, at, x:argsort{descending = false}, x:msort()
    end)
end

-- Numbers of every size, with all digits of their keys.
function TestSort:test_long_lines()
  local cases = {}
  local function add(dtype, make)
    local n = support.under_gc and 1000 or (support.slow or #cases > 0) and 20000 or 100000
    local data = {}
    for i = 1, n do data[i] = make() end
    cases[#cases + 1] = {dtype = dtype, shape = {n}, dim = 1, data = data}
  end
  add("float32", function() return (math.random() - 0.5) * 10.0 ^ math.random(-30, 30) end)
  add("float64", function() return (math.random() - 0.5) * 10.0 ^ math.random(-300, 300) end)
  add("int64", function() return math.random(-1 << 52, 1 << 52) + 0.0 end)
  add("int32", function() return math.random(-1 << 31, (1 << 31) - 1) + 0.0 end)
  add("int16", function() return math.random(-1 << 15, (1 << 15) - 1) + 0.0 end)
  along.compare(cases, [=[
def f(x, dim, k):
  up, down = stable(x, dim), stable(x, dim, True)
  return [x[up], up + 1, down + 1, x[down[:7]], x[up[len(x) // 3]]]]=],
    function(x)
      local value, at = x:sort()
      local down = x:argsort(1, true)
      return value, at, down, (x:topk(7)), (x:kthvalue(#x // 3 + 1))
    end)
end

-- Short, middling and long lines are sorted in other ways, all of them stably.
function TestSort:test_stability()
  for _, n in ipairs {2, 48, 49, 1000, 16383, 16384, 20000} do
    for _, dtype in ipairs {"float32", "int64", "bool", "float16"} do
      local x = (tensor.arange(n, {dtype = "int64"}) % 2):to(dtype)
      local expected = {}
      for i = 2, n, 2 do expected[#expected + 1] = i end
      for i = 1, n, 2 do expected[#expected + 1] = i end
      lu.assertTrue(x:argsort() == integers(expected), n .. " " .. dtype)
      local _, at = x:topk(n // 2, 1, false)
      lu.assertTrue(at == integers(expected)[{{1, n // 2}}], n .. " " .. dtype)
    end
  end
end

function TestSort:test_special_values()
  support.assert_values(tensor{nan, huge, -0.0, 1, -huge, 0, nan}:sort(), {7},
                        {-huge, -0.0, 0, 1, huge, nan, nan})
  support.assert_values(tensor{0, nan, -0.0}:sort(1, true), {3}, {nan, 0, -0.0})
  local least, most = math.mininteger, math.maxinteger
  equals(integers{0, most, least, -1}:sort():totable(), {least, -1, 0, most})
  equals(integers{0, most, least, -1}:sort(1, true):totable(), {most, 0, -1, least})
end

function TestSort:test_empty()
  for _, shape in ipairs(along.EMPTY) do
    local x = tensor.zeros(shape)
    for dim = 1, #shape do
      local value, at = x:sort(dim)
      equals({value.shape, at.shape, at.dtype}, {shape, shape, "int64"})
      equals(x:argsort(dim, true).shape, shape)
    end
    equals(x:unique().shape, {0})
    equals(x:isin(tensor{1}).shape, shape)
    equals(tensor.ones(2):isin(x):totable(), {false, false})
  end
  equals(tensor.zeros(3, 0):topk(0).shape, {3, 0})
  equals(tensor.ones(3):topk(0).shape, {0})
  equals(tensor.zeros(0, 3):median(2).shape, {0})
end

function TestSort:test_same_on_threads()
  tensor.manual_seed(3)
  local n = support.slow and 20000 or 200000
  local x = (tensor.randn(n) * 100):round()
  along.same_on_threads(function()
    local results = {x:sort()}
    for _, y in ipairs {x:reshape(n // 100, 100), x:reshape(100, n // 100), x:reshape(n, 1)} do
      for dim = 1, 2 do
        results[#results + 1], results[#results + 2] = y:sort(dim)
        results[#results + 1] = y:median(dim)
      end
    end
    results[#results + 1] = x:msort():searchsorted(x)
    results[#results + 1] = x:unique()
    return results
  end)
end

-- Lines and elements that are one in memory.
function TestSort:test_broadcast()
  local line, column = tensor{3, 1, 2}, tensor{{2}, {1}}
  local rows = line:broadcast_to(2, 3)
  equals(rows:sort():totable(), {{1, 2, 3}, {1, 2, 3}})
  equals(select(2, rows:sort(1)):totable(), {{1, 1, 1}, {2, 2, 2}})
  equals(column:broadcast_to(2, 9):argsort():totable()[2], {1, 2, 3, 4, 5, 6, 7, 8, 9})
  equals(column:broadcast_to(2, 9):cumsum(2)[{2, 9}]:item(), 9)
  equals(column:broadcast_to(2, 9):cumsum(1)[{2, 9}]:item(), 3)
  equals(column:broadcast_to(2, 9):argmax(1):totable(), {1, 1, 1, 1, 1, 1, 1, 1, 1})
  equals(rows:argmax(2):totable(), {1, 1})
  equals(tensor(2):broadcast_to(100):median():item(), 2)
end

-- The one sorted may be overwritten meanwhile, and a result go while its sibling stays.
function TestSort:test_in_a_program()
  local x = tensor{3, 1, 2}
  local value, at = x:sort()
  x:zero_()
  equals({value:totable(), at:totable()}, {{1, 2, 3}, {2, 3, 1}})
  local total = tensor.zeros(1)
  for i = 1, 200 do
    local v = tensor{i, 7, 5}:sort()
    total:add_(v[3])
  end
  equals(total:item(), 7 * 7 + (8 + 200) * 193 / 2)
  local f = tensor.compile(function(y) return y:sort(1, true) end)
  for i = 1, 3 do
    local v, w = f(tensor{i, 7, 2.5})
    equals({v[1]:item(), w:totable()}, {7, i > 2 and {2, 1, 3} or {2, 3, 1}})
  end
end

function TestSort:test_failures()
  local status, out, err = support.run_script([[
    local value, at = tensor.ones(3):sort()
    print(pcall(value.wait, value))
    print(pcall(at.wait, at))
    print(tensor.ones(3):median():item())]], {FAULT = "sort:1"})
  equals({status, err}, {0, ""})
  local line = "false\tsort: injected failure (queued at SCRIPT:1)\n"
  equals((out:gsub("SCRIPT:%d+: ", "")), line .. line .. "1.0\n")
end

function TestSort:test_errors()
  local x = tensor.ones(2, 3)
  for _, name in ipairs {"sort", "argsort"} do
    local f = tensor[name]
    raises(name .. ": dimension 3 is out of range for a tensor of size 2x3", f, x, 3)
    raises(name .. ": descending must be true or false, not number", f, x, 1, 1)
    raises(name .. ": stable must be true or false, not string", f, x, 1, true, "yes")
    raises(name .. ": unknown option 'down': descending or stable", f, x, {down = true})
    raises(name .. ": 5 arguments are too many: at most 4", f, x, 1, true, true, 1)
    raises(name .. ": argument 1 must be a tensor, not table", f, {1})
  end
end

TestRanks = {}

-- Of a line the k-th, some of the first, the middle one and the most frequent.
local ranks = [=[
def mode(line):
  values, counts = np.unique(line, return_counts=True)
  last = np.flatnonzero(line == values[np.argmax(counts)])[-1]
  return line[last], last + 1
def f(x, dim, k):
  n = x.shape[dim]
  up, down = stable(x, dim), stable(x, dim, True)
  kth = first(np.flip(first(up, k, dim), dim), 1, dim)
  middle = first(np.flip(first(up, (n - 1) // 2 + 1, dim), dim), 1, dim)
  isnan = np.isnan(x.astype("float64"))
  middle = np.where(isnan.any(dim, keepdims=True),
                    np.expand_dims(np.argmax(isnan, dim), dim), middle)
  squeezed = lambda y: np.squeeze(y, dim)
  made = [take(x, first(down, k, dim), dim), first(down, k, dim) + 1,
          take(x, first(up, k, dim), dim), first(up, k, dim) + 1,
          squeezed(take(x, kth, dim)), squeezed(kth) + 1,
          take(x, middle, dim), middle + 1]
  if not isnan.any():
    modes = lines(mode, x, dim)
    made += [first(modes, 1, dim), first(np.flip(modes, dim), 1, dim)]
  return made]=]

function TestRanks:test_of_lines()
  local cases = along.cases(along.DTYPES, along.SHAPES, true)
  for _, case in ipairs(cases) do
    case.k = math.min(case.shape[case.dim] or 1, math.random(4))
  end
  along.compare(cases, ranks, function(x, dim, case)
    local list = {x:topk(case.k, dim)}
    local function add(...) table.move({...}, 1, 2, #list + 1, list) end
    if case.k % 2 == 0 then
      add(x:topk(case.k, dim, false))
    else
      add(x:topk(case.k, dim, {largest = false, sorted = true}))
    end
    add(x:kthvalue(case.k, dim))
    add(x:median(dim, true))
    for _, value in ipairs(case.data) do if value ~= value then return table.unpack(list) end end
    add(x:mode(dim, true))
    return table.unpack(list)
  end)
end

function TestRanks:test_median_of_all()
  along.compare(along.cases(along.DTYPES, along.SHAPES, true), [=[
def f(x, dim, k):
  flat = np.sort(x.ravel())
  return [flat[-1] if flat[-1] != flat[-1] else flat[(len(flat) - 1) // 2]]]=],
    function(x) return x:median() end, 0)
  raises("median: a tensor of size 0 has no elements to choose from", tensor.median, tensor{})
  raises("median: a tensor of size 2x0 has no elements to choose from", tensor.median,
         tensor.zeros(2, 0), 2)
end

-- A digit of the keys that is the same for all, or for the wanted ones.
function TestRanks:test_selection()
  for _, dtype in ipairs {"float32", "float64", "int64", "int16", "uint8", "bool"} do
    local n = 5000
    for _, x in ipairs {tensor.ones(n, {dtype = dtype}), tensor.arange(n):remainder(2):to(dtype),
                        (tensor.arange(n) * 7919 % 100):to(dtype)} do
      local value, at = x:sort()
      for _, k in ipairs {1, 2, n // 4 - 1, n // 2, n} do
        local kth, where = x:kthvalue(k)
        lu.assertTrue(kth == value[k] and where == at[k], dtype .. " " .. k)
        local least, places = x:topk(k, 1, false)
        lu.assertTrue(least == value[{{1, k}}] and places == at[{{1, k}}], dtype .. " " .. k)
      end
    end
  end
end

function TestRanks:test_quantile()
  local cases = along.cases({"float32", "float64"}, along.SHAPES, false)
  for _, case in ipairs(cases) do
    case.k = math.random(0, 20) / 20
    case.data = support.random_integers(#case.data, 1, 9)
  end
  cases[#cases + 1] = {dtype = "float32", shape = {3, 2}, dim = 1, data = {1, nan, 2, 3, 4, 5},
                       k = 0.5}
  along.compare(cases, [=[
def f(x, dim, k):
  y = x.astype("float64")
  return [np.quantile(y, k, dim), np.quantile(y, k), np.quantile(y, [0, k, 1], dim)]]=],
    function(x, dim, case)
      equals(x:quantile(0.5).dtype, case.dtype)
      equals(#x:quantile(case.k, dim, true).shape, #case.shape)
      return x:quantile(case.k, dim), x:quantile(case.k), x:quantile({0, case.k, 1}, dim)
    end, 8)
  support.assert_values(tensor{huge, huge, 1}:quantile(0.75), {}, {huge})
  raises("quantile: wants numbers from 0 to 1, not 2", tensor.quantile, tensor{1}, 2)
  raises("quantile: wants numbers from 0 to 1, not table", tensor.quantile, tensor{1}, {{}})
  raises("quantile: wants float32 or float64, not int64: convert with :to()", tensor.quantile,
         integers{1}, 0.5)
  raises("quantile: there are no elements to choose from", tensor.quantile, tensor{}, 0.5)
end

function TestRanks:test_errors()
  local x = tensor.ones(2, 3)
  raises("topk: k = 4 is not a number from 0 to 3, the size of dimension 2 of 2x3", tensor.topk, x,
         4)
  raises("topk: argument 2 must be an integer, not string", tensor.topk, x, "2")
  raises("topk: largest must be true or false, not number", tensor.topk, x, 1, 1, 1)
  raises("kthvalue: k = 0 is not a number from 1 to 2, the size of dimension 1 of 2x3",
         tensor.kthvalue, x, 0, 1)
  raises("median: keepdim is for a dimension: that of all has none", tensor.median, x, nil, true)
  raises("mode: a tensor of size 2x0 has no elements to choose from", tensor.mode,
         tensor.zeros(2, 0))
end

TestSearch = {}

function TestSearch:test_searchsorted()
  local cases = {}
  for _, dtype in ipairs(along.DTYPES) do
    for _, shape in ipairs {{7}, {300}, {2, 9}, {3, 2, 40}} do
      cases[#cases + 1] = {dtype = dtype, shape = shape, dim = #shape,
                           data = along.data(dtype, support.numel(shape), true)}
    end
  end
  along.compare(cases, [=[
def rows(x, side):
  n = x.shape[-1]
  made = [np.searchsorted(np.sort(line), line[::-1], side) for line in x.reshape(-1, n)]
  return np.array(made).reshape(x.shape) + 1
def f(x, dim, k):
  edges = np.sort(x.reshape(-1, x.shape[-1])[0])
  left, right = np.searchsorted(edges, x) + 1, np.searchsorted(edges, x, "right") + 1
  return [rows(x, "left"), rows(x, "right"), left, right, left, right]]=],
    function(x, dim)
      local sorted, line = x:sort(), x:reshape(-1, x.shape[dim])[1]:msort()
      local flipped = {}
      for i, value in ipairs(x:reshape(-1, x.shape[dim]):totable()) do
        flipped[i] = {}
        for j, element in ipairs(value) do flipped[i][#value + 1 - j] = element end
      end
      flipped = tensor(flipped, {dtype = x.dtype}):reshape(x.shape)
      return sorted:searchsorted(flipped), sorted:searchsorted(flipped, {right = true}),
             line:searchsorted(x), line:searchsorted(x, true), x:bucketize(line),
             x:bucketize(line, {right = true})
    end)
end

function TestSearch:test_numbers_and_dtypes()
  local x = integers{1, 3, 5}
  equals(x:searchsorted(3):item(), 2)
  equals(x:searchsorted(2.5):item(), 2)
  equals(x:searchsorted(3, {right = true}):item(), 3)
  equals(x:searchsorted(tensor{0, 3.5, 9}):totable(), {1, 3, 4})
  equals(tensor{1, 2, nan}:searchsorted(nan):item(), 3)
  equals(tensor{}:searchsorted(tensor{1, 2}):totable(), {1, 1})
  equals(integers{math.mininteger, math.maxinteger - 1}:searchsorted(math.maxinteger):item(), 3)
  raises("searchsorted: what is sorted must have one dimension, or those of the values but for " ..
         "the last: not 2x3 for 3x3", tensor.searchsorted, tensor.ones(2, 3), tensor.ones(3, 3))
  raises("searchsorted: unknown option 'side': right", tensor.searchsorted, x, x, {side = "left"})
  raises("bucketize: the boundaries must have one dimension, not 2", tensor.bucketize, x,
         tensor.ones(2, 2))
end

function TestSearch:test_isin()
  along.compare(along.cases(along.DTYPES, along.SHAPES, true), [=[
def f(x, dim, k): return [np.isin(x, [1, -2, 0]), np.isin([1, -2, 0], x), x == 1]]=],
    function(x)
      local among = tensor{{1, -2, 0}}
      return x:isin(among), among:reshape(3):isin(x), x:isin(1)
    end)
end

TestUnique = {}

local WITH_DIMENSIONS = table.move(along.SHAPES, 2, #along.SHAPES, 1, {})

function TestUnique:test_values()
  local cases = along.cases(along.DTYPES, WITH_DIMENSIONS, true)
  cases[#cases + 1] = {dtype = "int64", shape = {5000}, dim = 1,
                       data = support.random_integers(5000, -3000, 3000)}
  along.compare(cases, [=[
def f(x, dim, k):
  made = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
  values, _, inverse, counts = made
  return [values, inverse.reshape(x.shape) + 1, counts]]=],
    function(x, _, case)
      local values, inverse, counts = x:unique{return_inverse = true, return_counts = true}
      equals({values.dtype, inverse.dtype, counts.dtype}, {case.dtype, "int64", "int64"})
      equals(select("#", x:unique()), 1)
      equals(select(2, x:unique{return_counts = true}) == counts, true)
      return values, inverse, counts
    end, 0)
end

function TestUnique:test_consecutive()
  along.compare(along.cases(along.DTYPES, WITH_DIMENSIONS, true), [=[
def f(x, dim, k):
  flat = x.ravel()
  begins = np.concatenate([[True], flat[1:] != flat[:-1]])
  groups = np.cumsum(begins)
  return [flat[begins], groups.reshape(x.shape), np.bincount(groups - 1)]]=],
    function(x)
      return x:unique_consecutive{return_inverse = true, return_counts = true}
    end, 0)
end

function TestUnique:test_of_one_element()
  local values, inverse, counts = tensor(5):unique{return_inverse = true, return_counts = true}
  equals({values:totable(), inverse:totable(), counts:totable()}, {{5}, 1, {1}})
end

-- It waits, and says what it waited for when that failed.
function TestUnique:test_waits()
  local status, out, err = support.run_script([[
    local x = tensor.ones(3) + 1
    print(pcall(function() return x:unique() end))]], {FAULT = "add:1"})
  equals({status, err}, {0, ""})
  equals(out, "false\tSCRIPT:2: add: injected failure (queued at SCRIPT:1)\n")
  lu.assertErrorMsgContains("unique: a function being traced has no values to read",
                            tensor.compile(function(x) return x:unique() end), tensor{1})
  raises("unique: unknown option 'dim': return_inverse or return_counts", tensor.unique, tensor{1},
         {dim = 1})
  raises("unique: the options must be a table, not 1", tensor.unique, tensor{1}, 1)
end

os.exit(lu.LuaUnit.run())
