-- Functions that read and write elements at indices or under masks, with NumPy as the oracle; large
-- ones, on any number of threads.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local picking = require "picking"
local equals, raises = lu.assertEquals, support.assert_raises
local int, bool, one_of, random = picking.int, picking.bool, picking.one_of, math.random
local operand, indices = picking.operand, picking.indices
local own, narrower = picking.own, picking.narrower
local new_batch, random_shape = picking.new_batch, picking.random_shape
local ROUNDS, DTYPES = picking.rounds, picking.dtypes

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

os.exit(lu.LuaUnit.run())
