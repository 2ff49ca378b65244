-- Tensors put together and taken apart, tiled, rolled and turned, against NumPy over random shapes
-- and layouts; and what is refused.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local oracle = require "oracle"
local equals, raises = lu.assertEquals, support.assert_raises
local tuple = oracle.tuple

local ROUNDS = support.slow and 6 or 30
local nan = 0 / 0

local closed = tensor.ones(2)
do local _ <close> = closed end

local function copy(list) return {table.unpack(list)} end

-- A few operands, and their inputs for NumPy: of one shape, but for `dim`.
local function operands(shape, dim)
  local list, inputs = {}, {}
  for i = 1, math.random(4) do
    local own = copy(shape)
    if dim then own[dim] = math.random(0, 3) end
    list[i], inputs[i] = oracle.operand(own)
  end
  return list, inputs
end

TestTogether = {}

function TestTogether:test_values()
  local cases = oracle.new()
  for _ = 1, ROUNDS do
    local shape = oracle.shape(1, 5)
    local dim = math.random(#shape)
    local list, inputs = operands(shape, dim)
    cases:add("cat", inputs, ("np.concatenate(xs, %d)"):format(dim - 1), tensor.cat(list, dim))
    cases:add("concat", inputs, ("np.concatenate(xs, %d)"):format(dim - 1),
              tensor.concat(list, dim - #shape - 1))
    list, inputs = operands(shape, 1)
    cases:add("cat along 1", inputs, "np.concatenate(xs)", tensor.cat(list))
    if #shape > 1 then cases:add("vstack", inputs, "np.vstack(xs)", tensor.vstack(list)) end
    list, inputs = operands(shape, math.min(#shape, 2))
    cases:add("hstack", inputs, "np.hstack(xs)", tensor.hstack(list))
    shape = oracle.shape(0, 5)
    list, inputs = operands(shape)
    local at = math.random(#shape + 1)
    cases:add("stack", inputs, ("np.stack(xs, %d)"):format(at - 1),
              tensor.stack(list, math.random(2) == 1 and at or at - #shape - 2))
    cases:add("stack along 1", inputs, "np.stack(xs)", tensor.stack(list))
    cases:add("vstack of one size", inputs, "np.vstack(xs)", tensor.vstack(list))
    cases:add("hstack of one size", inputs, "np.hstack(xs)", tensor.hstack(list))
  end
  cases:check()
end

function TestTogether:test_bools()
  local x = tensor({{true, false}, {false, false}})
  lu.assertTrue(tensor.cat{x, x[{{1, 1}}]} == tensor{{true, false}, {false, false}, {true, false}})
  lu.assertTrue(x:flip(1, 2) == tensor{{false, false}, {false, true}})
  lu.assertTrue(x:tile(1, 2) == tensor{{true, false, true, false}, {false, false, false, false}})
  lu.assertTrue(tensor.ones_like(x):tril() == tensor{{true, false}, {true, true}})
  lu.assertTrue(tensor.full_like(x, 3):roll(1) == tensor{{true, true}, {true, true}})
  lu.assertTrue(x[1]:diag() == x)
  equals(tensor.cat{x[1], tensor{0.5}}:totable(), {1, 0, 0.5})
end

function TestTogether:test_dtypes_are_promoted()
  local x, y = tensor{1}, tensor({1 / 3}, {dtype = "float64"})
  equals(tensor.cat{x, y}.dtype, "float64")
  equals(tensor.cat{y, x}:totable(), {1 / 3, 1})
  equals(tensor.stack{x, y}:totable(), {{1}, {1 / 3}})
  equals(tensor.cat{x, x}.dtype, "float32")
end

function TestTogether:test_empty_vectors_go_with_anything()
  local x, none = tensor.ones(2, 3), tensor{}
  equals(tensor.cat{none, x, none}.shape, {2, 3})
  equals(tensor.cat({x, none, x}, 2).shape, {2, 6})
  equals(tensor.cat{none, none}.shape, {0})
  equals(tensor.cat{none, tensor{1}}:totable(), {1})
end

function TestTogether:test_a_copy()
  local x = tensor{1, 2}
  local y = tensor.cat{x}
  x:zero_()
  equals(y:totable(), {1, 2})
end

function TestTogether:test_errors()
  local x = tensor.zeros(2, 3)
  for _, name in ipairs {"cat", "concat", "stack", "hstack", "vstack"} do
    local f = tensor[name]
    raises(name .. ": argument 1 must be a table of tensors, not nil", f)
    raises(name .. ": argument 1 must be a table of tensors, not tensor", f, x)
    raises(name .. ": argument 1 must be a table of tensors, not a tensor that has been closed", f,
           closed)
    raises(name .. ": wants at least one tensor", f, {})
    raises(name .. ": element 2 of the table is no tensor but number", f, {x, 5})
    raises(name .. ": tensor 2 has been closed", f, {x, closed})
    local most = name:find "^[hv]" and 1 or 2
    raises(("%s: %d arguments are too many: at most %d"):format(name, most + 1, most), f, {x},
           table.unpack({1, 7}, 1, most))
  end
  raises("cat: cannot join 2x3 with 3x2 along dimension 1: the other sizes differ", tensor.cat,
         {x, x:t()})
  raises("cat: cannot join 2x3 with 3 along dimension 1: the other sizes differ", tensor.cat,
         {x, x[1]})
  raises("cat: 0-dimensional tensors have no dimension to join: use stack", tensor.cat, {tensor(1)})
  raises("cat: dimension 3 is out of range for a tensor of size 2x3", tensor.cat, {x}, 3)
  raises("cat: dimension table is not an integer", tensor.cat, {x}, {})
  raises("concat: dimension 0 is out of range for a tensor of size 2x3", tensor.concat, {x}, 0)
  raises("hstack: cannot join 2x3 with 3x2 along dimension 2: the other sizes differ",
         tensor.hstack, {x, x:t()})
  raises("vstack: cannot join 2x3 with 1x2 along dimension 1: the other sizes differ",
         tensor.vstack, {x, tensor{1, 2}})
  raises("stack: cannot stack 2x3 and 3x2: the sizes differ", tensor.stack, {x, x:t()})
  raises("stack: dimension 4 is out of range for a tensor of size 1x2x3", tensor.stack, {x}, 4)
  raises("stack: 9 dimensions are too many: at most 8", tensor.stack,
         {tensor.zeros(1, 1, 1, 1, 1, 1, 1, 1)})
end

TestApart = {}

local function add_parts(cases, what, input, expression, list)
  cases:add(what .. ": count", {input}, ("len(%s)"):format(expression), tensor(#list))
  for i, part in ipairs(list) do
    cases:add(what, {input}, ("(%s)[%d]"):format(expression, i - 1), part)
  end
end

function TestApart:test_values()
  local cases = oracle.new()
  for _ = 1, ROUNDS do
    local shape = oracle.shape(1, 4)
    local dim = math.random(#shape)
    local x, input = oracle.operand(shape)
    local size, d = shape[dim], dim - 1
    local n = math.random(5)
    add_parts(cases, "tensor_split", input, ("np.array_split(x, %d, %d)"):format(n, d),
              x:tensor_split(n, dim))
    local sizes, ends, left = {}, {}, size
    while left > 0 do
      sizes[#sizes + 1] = math.random(0, left)
      left = left - sizes[#sizes]
      ends[#sizes] = size - left
    end
    local whole = #sizes == 0
    if whole then sizes[1] = 0 end
    ends[#ends] = nil
    add_parts(cases, "split by sizes", input, ("np.split(x, [%s], %d)")
              :format(table.concat(ends, ","), d), x:split(sizes, dim - #shape - 1))
    local begins = {}
    for i, last in ipairs(ends) do begins[i] = last + 1 end
    add_parts(cases, "tensor_split at", input, ("np.array_split(x, [%s], %d)")
              :format(table.concat(ends, ","), d), x:tensor_split(begins, dim))
    local even = {}
    for at = n, size - 1, n do even[#even + 1] = at end
    add_parts(cases, "split", input, ("np.split(x, [%s], %d)"):format(table.concat(even, ","), d),
              x:split(n, dim))
    add_parts(cases, "unbind", input, ("list(np.moveaxis(x, %d, 0))"):format(d), x:unbind(dim))
  end
  cases:check()
end

function TestApart:test_chunks()
  local function sizes(n, chunks)
    local list = {}
    for i, part in ipairs(tensor.zeros(n):chunk(chunks)) do list[i] = #part end
    return list
  end
  equals(sizes(10, 3), {4, 4, 2})
  equals(sizes(6, 4), {2, 2, 2}) -- as in PyTorch, at most so many
  equals(sizes(2, 5), {1, 1})
  equals(sizes(0, 3), {0})
  equals(sizes(7, 1), {7})
  equals(sizes(7, math.maxinteger), {1, 1, 1, 1, 1, 1, 1})
  equals(tensor.zeros(2, 6):chunk(2, -1)[2].shape, {2, 3})
end

function TestApart:test_parts_share_memory()
  local x = tensor.arange(6):reshape(2, 3)
  x:split(2, 2)[1]:fill_(0)
  x:unbind()[2]:add_(10)
  x:chunk(2)[1]:add_(100)
  x:tensor_split({3}, 2)[2]:mul_(2)
  equals(x:totable(), {{100, 100, 206}, {10, 10, 32}})
end

function TestApart:test_indices()
  local x = tensor.arange(5)
  local function values(where)
    local list = {}
    for i, part in ipairs(x:tensor_split(where)) do list[i] = part:totable() end
    return list
  end
  equals(values{2, 4}, {{1}, {2, 3}, {4, 5}})
  equals(values{-1}, {{1, 2, 3, 4}, {5}})
  equals(values{1, 6}, {{}, {1, 2, 3, 4, 5}, {}})
  equals(values{4, 2}, {{1, 2, 3}, {}, {2, 3, 4, 5}})
  equals(values{}, {{1, 2, 3, 4, 5}})
end

function TestApart:test_errors()
  local x = tensor.zeros(2, 3)
  for name, given in pairs {split = 1, chunk = 1, tensor_split = 1} do
    local f = x[name]
    raises(name .. ": argument 1 must be a tensor, not number", f, 5, given)
    raises(name .. ": argument 1 is a tensor that has been closed", f, closed, given)
    raises(name .. ": dimension 3 is out of range for a tensor of size 2x3", f, x, given, 3)
    raises(name .. ": dimension 1 is out of range for a tensor of size ()", f, tensor(1), given)
    raises(name .. ": argument 2 must be an integer, not nil", f, x)
    raises(name .. ": argument 2 must be an integer, not 0.5", f, x, 0.5)
    raises(name .. ": argument 2 must be an integer, not string", f, x, "1")
    raises(name .. ": 4 arguments are too many: at most 3", f, x, given, 1, 1)
  end
  raises("split: a size 0 is less than 1", x.split, x, 0)
  raises("split: a size -1 is less than 0", x.split, x, {3, -1})
  raises("split: a size nan is not an integer", x.split, x, {math.abs(nan)})
  for _, sizes in ipairs {{1}, {1, 2}, {}, {math.maxinteger, math.maxinteger, 4}} do
    raises("split: the sizes do not add up to the 2 of dimension 1 of a tensor of size 2x3",
           x.split, x, sizes)
  end
  raises("chunk: 0 chunks are none", x.chunk, x, 0)
  raises("tensor_split: -1 parts are none", x.tensor_split, x, -1)
  raises("tensor_split: 1099511627776 parts are too many: at most 16777216", x.tensor_split, x,
         1 << 40)
  raises("tensor_split: index 4 is out of range for dimension 1 of a tensor of size 2x3",
         x.tensor_split, x, {4})
  raises("tensor_split: index 0 is out of range for dimension 1 of a tensor of size 2x3",
         x.tensor_split, x, {0})
  raises("tensor_split: an index a is not an integer", x.tensor_split, x, {"a"})
  local huge = tensor.zeros(1 << 40, 0)
  raises("unbind: 1099511627776 parts are too many: at most 16777216", huge.unbind, huge)
  raises("split: 1099511627776 parts are too many: at most 16777216", huge.split, huge, 1)
  raises("chunk: 1099511627776 parts are too many: at most 16777216", huge.chunk, huge, 1 << 41)
  raises("unbind: dimension nan is not an integer", x.unbind, x, math.abs(nan))
end

TestMoved = {}

function TestMoved:test_values()
  local cases = oracle.new()
  for _ = 1, ROUNDS do
    local shape = oracle.shape(1, 5)
    local x, input = oracle.operand(shape)
    local dims, shifts, axes = {}, {}, {}
    for i = 1, math.random(#shape) do
      axes[i] = math.random(#shape) - 1
      dims[i], shifts[i] = math.random(2) == 1 and axes[i] + 1 or axes[i] - #shape,
                           math.random(-9, 9)
    end
    cases:add("roll", {input}, ("np.roll(x, %s, %s)"):format(tuple(shifts), tuple(axes)),
              x:roll(shifts, dims))
    cases:add("roll of all", {input}, ("np.roll(x, %d)"):format(shifts[1]), x:roll(shifts[1]))
    local once = {}
    for d = 0, #shape - 1 do
      if math.random(2) == 1 then once[#once + 1] = d end
    end
    local flipped = {}
    for i, d in ipairs(once) do flipped[i] = d + 1 end
    cases:add("flip", {input}, ("np.flip(x, %s)"):format(#once == 0 and "()" or tuple(once)),
              x:flip(flipped))
    cases:add("flip of all", {input}, "np.flip(x)", x:flip())
    cases:add("flipud", {input}, "np.flipud(x)", x:flipud())
    if #shape > 1 then
      local a, b = 0, 0
      while a == b do a, b = math.random(#shape) - 1, math.random(#shape) - 1 end
      local n = math.random(-5, 5)
      cases:add("fliplr", {input}, "np.fliplr(x)", x:fliplr())
      cases:add("rot90", {input}, "np.rot90(x)", x:rot90())
      cases:add("rot90 of two", {input}, ("np.rot90(x, %d, (%d, %d))"):format(n, a, b),
                x:rot90(n, {a + 1, b - #shape}))
    end
    for _, name in ipairs {"atleast_1d", "atleast_2d", "atleast_3d"} do
      cases:add(name, {input}, ("np.%s(x)"):format(name), x[name](x))
    end
  end
  cases:check()
end

-- Long enough for several blocks and chunks of the copy.
function TestMoved:test_long_flips()
  local x = tensor.arange(70000, {dtype = "float64"})
  local y = x:flip(1)
  lu.assertTrue(y == 70001 - x)
  lu.assertTrue(y:is_contiguous())
  lu.assertTrue(x:reshape(70, 1000):flip(2):flip(1):reshape(-1) == y)
  lu.assertTrue(x:reshape(70, 1000):t():flip(1, 2):t():reshape(-1) == y)
  lu.assertTrue((x:flip(1) + x):sum():item() == 70000 * 70001.0)
end

function TestMoved:test_copies()
  local x = tensor{{1, 2}, {3, 4}}
  for _, y in ipairs {x:flip(1), x:roll(0), x:roll(2, 1), x:rot90(0), x:rot90(2), x:tile(1, 1),
                      x:tile(1), x:tile{}, x:repeat_interleave(1, 1), x:fliplr(), x:flip{},
                      x:tril(5), x:triu(-5), x:diag()} do
    y:zero_()
  end
  equals(x:totable(), {{1, 2}, {3, 4}})
end

function TestMoved:test_errors()
  local x = tensor.zeros(2, 3)
  raises("roll: shift is missing", x.roll, x)
  raises("roll: shift a is not an integer", x.roll, x, "a")
  raises("roll: shift nan is not an integer", x.roll, x, {1, math.abs(nan)}, {1, 2})
  raises("roll: 2 shifts want as many dimensions", x.roll, x, {1, 2})
  raises("roll: 1 shifts do not go with 2 dimensions: as many are wanted", x.roll, x, 1, {1, 2})
  raises("roll: dimension 3 is out of range for a tensor of size 2x3", x.roll, x, 1, 3)
  raises("roll: 4 arguments are too many: at most 3", x.roll, x, 1, 1, 1)
  raises("rot90: wants at least 2 dimensions, not 1", x.rot90, tensor{1})
  raises("rot90: argument 2 must be an integer, not string", x.rot90, x, "1")
  raises("rot90: wants 2 dimensions to turn, not 1", x.rot90, x, 1, 2)
  raises("rot90: dimension 2 is given twice", x.rot90, x, 1, {2, -1})
  raises("rot90: dimension 3 is out of range for a tensor of size 2x3", x.rot90, x, 1, {1, 3})
  raises("fliplr: wants at least 2 dimensions, not 1", x.fliplr, tensor{1})
  raises("flipud: wants at least 1 dimension, not 0", x.flipud, tensor(1))
  for _, name in ipairs {"atleast_1d", "atleast_2d", "atleast_3d", "fliplr", "flipud"} do
    raises(name .. ": argument 1 must be a tensor, not table", x[name], {x})
    raises(name .. ": 2 arguments are too many: at most 1", x[name], x, x)
  end
  equals(x:roll(math.mininteger, 2).shape, {2, 3})
  equals(x:rot90(math.maxinteger).shape, {3, 2})
end

function TestMoved:test_flatten()
  local x = tensor.zeros(2, 3, 4)
  equals(x:flatten().shape, {24})
  equals(x:flatten(2).shape, {2, 12})
  equals(x:flatten(1, -2).shape, {6, 4})
  equals(tensor(1):flatten().shape, {1})
  raises("flatten: dimension 4 is out of range for a tensor of size 2x3x4", x.flatten, x, 1, 4)
  raises("flatten: dimension nan is not an integer", x.flatten, x, math.abs(nan))
  raises("flatten: the first dimension must not come after the last", x.flatten, x, 3, 1)
  raises("flatten: 4 arguments are too many: at most 3", x.flatten, x, 1, 2, 3)
end

TestRepeated = {}

function TestRepeated:test_values()
  local cases = oracle.new()
  for _ = 1, ROUNDS do
    local shape = oracle.shape(0, 4)
    local x, input = oracle.operand(shape)
    local counts = {}
    for i = 1, math.random(0, 4) do counts[i] = math.random(8) == 1 and 0 or math.random(3) end
    cases:add("tile", {input}, ("np.tile(x, %s)"):format(#counts == 0 and "()" or tuple(counts)),
              x:tile(counts))
    if #counts > 0 then
      cases:add("tile of numbers", {input}, ("np.tile(x, %s)"):format(tuple(counts)),
                x:tile(table.unpack(counts)))
    end
    local n = math.random(0, 4)
    cases:add("repeat_interleave", {input}, ("np.repeat(x, %d)"):format(n), x:repeat_interleave(n))
    local counts = tensor.arange(0, x:numel() - 1):to("int64") % (n + 1)
    local by_counts = ("np.repeat(x, np.arange(x.size) %% %d)"):format(n + 1)
    cases:add("repeat_interleave by counts", {input}, by_counts, x:repeat_interleave(counts))
    if #shape > 0 then
      local dim = math.random(#shape)
      cases:add("repeat_interleave along", {input}, ("np.repeat(x, %d, %d)"):format(n, dim - 1),
                x:repeat_interleave(n, dim))
    end
  end
  cases:check()
end

function TestRepeated:test_errors()
  local x = tensor.zeros(2, 3)
  raises("tile: a count is missing", x.tile, x)
  raises("tile: a count -1 is less than 0", x.tile, x, -1)
  raises("tile: a count nan is not an integer", x.tile, x, 1, math.abs(nan))
  raises("tile: a count table is not an integer", x.tile, x, 1, {})
  raises("tile: 3 arguments are too many: at most 2", x.tile, x, {1}, 2)
  raises("tile: 9 dimensions are too many: at most 8", x.tile, x, 1, 1, 1, 1, 1, 1, 1, 1, 1)
  raises("tile: 9223372036854775807 times 3 elements are too many", x.tile, x, math.maxinteger)
  raises("tile: a tensor of 2199023255552x3298534883328 elements is too large", x.tile, x, 1 << 40,
         1 << 40)
  raises("repeat_interleave: argument 2 must be an integer, not nil", x.repeat_interleave, x)
  raises("repeat_interleave: a count -1 is less than 0", x.repeat_interleave, x, -1)
  raises("repeat_interleave: a count -2 is less than 0", x.repeat_interleave, x,
         tensor({1, -2}, {dtype = "int32"}), 1)
  raises("repeat_interleave: wants 3 counts, one for each index of dimension 2, not size 2",
         x.repeat_interleave, x, tensor({1, 2}, {dtype = "int32"}), 2)
  raises("repeat_interleave: dimension 3 is out of range for a tensor of size 2x3",
         x.repeat_interleave, x, 1, 3)
  raises("repeat_interleave: 9223372036854775807 times 6 elements are too many",
         x.repeat_interleave, x, math.maxinteger)
end

TestTriangles = {}

function TestTriangles:test_values()
  local cases = oracle.new()
  for round = 1, 2 * ROUNDS do
    local shape = oracle.shape(0, 3)
    local rows, columns = math.random(0, 12), math.random(0, 12)
    if round % 5 == 0 then columns = rows end
    table.move({rows, columns}, 1, 2, #shape + 1, shape)
    local x, input = oracle.operand(shape)
    local k = round % 3 == 0 and 0 or math.random(-13, 13)
    cases:add("tril", {input}, ("np.tril(x, %d)"):format(k), k == 0 and x:tril() or x:tril(k))
    cases:add("triu", {input}, ("np.triu(x, %d)"):format(k), k == 0 and x:triu() or x:triu(k))
    if #shape == 2 then
      cases:add("trace", {input}, "np.trace(x)", x:trace())
      cases:add("diag of a matrix", {input}, ("np.diag(x, %d)"):format(k), x:diag(k))
    end
    x, input = oracle.operand{rows}
    cases:add("diag of a vector", {input}, ("np.diag(x, %d)"):format(k), x:diag(k))
    x, input = oracle.operand({rows}, round % 2 == 0 and "float64" or "int64")
    local n = math.random(0, 4)
    cases:add("vander", {input}, ("np.vander(x, %d)"):format(n), x:vander(n))
    cases:add("vander, increasing", {input}, "np.vander(x, 3, True)", x:vander(3, true))
  end
  cases:check()
end

function TestTriangles:test_in_place()
  local whole = tensor.arange(24):reshape(4, 6)
  local x = whole[{{}, {1, 6, 2}}]:t()
  local below = x:tril(1)
  lu.assertTrue(rawequal(x:tril_(1), x))
  lu.assertTrue(x == below)
  equals(whole[{1, 3}]:item(), 3)
  equals(whole[{1, 5}]:item(), 5)
  equals(whole[{4, 1}]:item(), 0)
  x:copy_(tensor.ones(3, 4)):triu_(-1)
  equals(x:totable(), {{1, 1, 1, 1}, {1, 1, 1, 1}, {0, 1, 1, 1}})
  equals(whole:sum():item(), 11 + 12 * 13)
  raises("tril_: wants at least 2 dimensions, not 1", x.tril_, tensor{1})
end

-- Zeros, not products with zero.
function TestTriangles:test_nan_is_cut_off()
  local x = tensor.full({5, 5}, nan)
  equals(x:tril(-5):sum():item(), 0)
  equals(x:triu(5):sum():item(), 0)
  equals(tensor.full({64, 63}, nan):triu(63):abs():max():item(), 0)
end

function TestTriangles:test_errors()
  local x = tensor.zeros(2, 3)
  for _, name in ipairs {"tril", "triu"} do
    raises(name .. ": wants at least 2 dimensions, not 1", x[name], tensor{1})
    raises(name .. ": argument 2 must be an integer, not 0.5", x[name], x, 0.5)
    raises(name .. ": argument 2 must be an integer, not table", x[name], x, {})
    raises(name .. ": 3 arguments are too many: at most 2", x[name], x, 1, 1)
    equals(x[name](x, math.mininteger).shape, {2, 3})
    equals(x[name](x, math.maxinteger).shape, {2, 3})
    equals(tensor.ones(1, 1, 1, 1, 1, 1, 2, 2)[name](tensor.ones(1, 1, 1, 1, 1, 1, 2, 2)):sum()
           :item(), 3)
  end
  raises("trace: wants 2 dimensions, not 1", x.trace, tensor{1})
  raises("trace: 2 arguments are too many: at most 1", x.trace, x, 1)
  raises("diag: wants 1 or 2 dimensions, not 0", x.diag, tensor(1))
  raises("diag: argument 2 must be an integer, not string", x.diag, x, "1")
  raises("diag: a tensor of 4611686018427387904x4611686018427387904 elements is too large",
         x.diag, tensor{}, 1 << 62)
  raises("vander: wants 1 dimension, not 2", x.vander, x)
  raises("vander: -1 columns are less than 0", x.vander, x[1], -1)
  raises("vander: argument 3 must be true or false, not 1", x.vander, x[1], 2, 1)
end

TestGrids = {}

function TestGrids:test_values()
  local cases = oracle.new()
  for _ = 1, ROUNDS do
    local list, inputs = {}, {}
    for i = 1, math.random(4) do list[i], inputs[i] = oracle.operand{math.random(0, 3)} end
    local ij, xy = tensor.meshgrid(list), tensor.meshgrid(list, {indexing = "xy"})
    local one_by_one = tensor.meshgrid(table.unpack(list))
    equals({#ij, #xy}, {#list, #list})
    for i = 1, #list do
      cases:add("meshgrid", inputs, ("np.meshgrid(*xs, indexing='ij')[%d]"):format(i - 1), ij[i])
      cases:add("meshgrid xy", inputs, ("np.meshgrid(*xs)[%d]"):format(i - 1), xy[i])
      lu.assertTrue(one_by_one[i].shape[1] == ij[i].shape[1])
    end
    local shape = oracle.shape(0, 4)
    for i = 1, #list do
      local own = {table.unpack(shape, math.random(#shape + 1))}
      for d = 1, #own do own[d] = math.random(2) == 1 and 1 or own[d] end
      list[i], inputs[i] = oracle.operand(own)
    end
    for i, x in ipairs(tensor.broadcast_tensors(table.unpack(list))) do
      cases:add("broadcast_tensors", inputs, ("np.broadcast_arrays(*xs)[%d]"):format(i - 1), x)
    end
    equals(#tensor.broadcast_tensors(list), #list)
  end
  cases:check()
end

function TestGrids:test_forms()
  local x, y = tensor{1, 2}, tensor{3, 4, 5}
  local a, b = table.unpack(tensor.meshgrid({x, y, indexing = "xy"}))
  equals(a:totable(), {{1, 2}, {1, 2}, {1, 2}})
  equals(b:totable(), {{3, 3}, {4, 4}, {5, 5}})
  equals(tensor.meshgrid(x, y, {indexing = "xy"})[1].shape, {3, 2})
  equals(tensor.meshgrid(x, y, {})[1].shape, {2, 3})
  equals(tensor.meshgrid(tensor(7), y)[1]:totable(), {{7, 7, 7}})
  x:mul_(10)
  equals(a:totable()[3], {10, 20})
end

function TestGrids:test_errors()
  local x = tensor{1, 2}
  raises("meshgrid: unknown option 'index': indexing", tensor.meshgrid, x, {index = 1})
  raises("meshgrid: indexing is 'ij' or 'xy', not yx", tensor.meshgrid, x, {indexing = "yx"})
  raises("meshgrid: wants vectors, and tensor 2 is 1x2", tensor.meshgrid, x, x:reshape(1, 2))
  raises("meshgrid: argument 1 must be a tensor, not nil", tensor.meshgrid)
  raises("meshgrid: argument 2 must be a tensor, not number", tensor.meshgrid, x, 5)
  raises("meshgrid: element 2 of the table is no tensor but nil", tensor.meshgrid, {x, nil, x})
  raises("meshgrid: 9 dimensions are too many: at most 8", tensor.meshgrid,
         {x, x, x, x, x, x, x, x, x})
  raises("broadcast_tensors: cannot broadcast 3 with the others: sizes 2 and 3 differ in " ..
         "dimension 1", tensor.broadcast_tensors, x, tensor{1, 2, 3})
  raises("broadcast_tensors: argument 2 is a tensor that has been closed", tensor.broadcast_tensors,
         x, closed)
end

TestAsynchrony = {}

-- A function being traced has no values, so what ran there has not asked for any.
function TestAsynchrony:test_nothing_waits()
  local f = tensor.compile(function(x, v)
    local results = {
      x:view(6), x:view_as(x), x:reshape_as(x:view(6)), x:t():reshape(6), x:flatten(),
      x:unflatten(1, 2, 1), x:squeeze(), x:unsqueeze(1), x:permute(2, 1), x:swapaxes(1, 2),
      x:movedim(1, 2), x:expand(2, 2, 3), x:expand_as(x), x:broadcast_to(2, 3), x:tile(2),
      x:repeat_interleave(2), tensor.cat{x, x}, tensor.concat{x, x}, tensor.stack{x, x},
      tensor.hstack{x, v}, tensor.vstack{v, v}, x:split(1)[1], x:split{1, 1}[1], x:chunk(2)[1],
      x:unbind()[1], x:tensor_split(2)[1], x:tensor_split({2})[1], x:flip(1), x:fliplr(),
      x:flipud(), x:rot90(), x:roll(1), x:roll(1, 2), x:narrow(1, 1, 1), x:select(1, 1),
      x:diagonal(), x:diag(), v:view(2):diag(), x:tril(), x:triu(), x:clone():tril_(),
      x:clone():triu_(), x:trace(), tensor.meshgrid(x[1], x[2])[1], x:atleast_1d(), x:atleast_2d(),
      x:atleast_3d(), tensor.broadcast_tensors(x, x)[1], x:t():contiguous(), x:unfold(1, 1, 1),
      tensor.empty(2), tensor.linspace(0, 1, 3), tensor.logspace(0, 1, 3), x:zeros_like(),
      x:ones_like(), x:full_like(1), x:empty_like(), x[1]:vander(),
    }
    local total = x:sum() + x:nbytes() * x:element_size() * 0
    for _, y in ipairs(results) do total = total + y:zeros_like():sum() end
    return total
  end)
  for i = 1, 2 do
    equals(f(tensor.full({2, 3}, i), tensor.ones(2, 1)):item(), 6 * i)
  end
end

-- What fails late is told with the line of the script, not with one of the library's.
function TestAsynchrony:test_failures_come_from_the_callers_line()
  for fault, line in pairs {["empty:1"] = 2, ["copy_:2"] = 2, ["flip:1"] = 3} do
    local name = fault:match "%a+_?"
    local status, out = support.run_script([[
      local a = tensor.ones(2)
      local b = tensor.cat{a, a}
      local c = a:flip(1)
      print(pcall(tostring, b))
      print(pcall(tostring, c))
    ]], {FAULT = fault})
    lu.assertStrContains(out, ("%s: injected failure (queued at SCRIPT:%d)"):format(name, line))
    equals(status, 0)
  end
end

-- A call that is refused leaves nothing behind.
function TestAsynchrony:test_no_half_made_tensors()
  local x = tensor.ones(100, 100)
  collectgarbage()
  collectgarbage()
  local before = tensor.memory().live
  for _ = 1, 20 do
    lu.assertFalse(pcall(tensor.cat, {x, x[1]}))
    lu.assertFalse(pcall(tensor.stack, {x, x:t(), x[1]}))
    lu.assertFalse(pcall(x.tile, x, 1 << 40, 1 << 40))
    lu.assertFalse(pcall(x.roll, x, 1, 5))
    lu.assertFalse(pcall(x.split, x, {99, 2}))
    lu.assertFalse(pcall(x.view, x:t(), -1))
    lu.assertFalse(pcall(x.diag, x[1], 1 << 40))
  end
  collectgarbage()
  collectgarbage()
  equals(tensor.memory().live, before)
end

TestCompile = {}

function TestCompile:test_joins()
  local f = tensor.compile(function(x, y)
    local rows = tensor.cat{x, y}:tril()
    return tensor.stack{rows, rows:roll(1, 2)}:tile(1, 1, 2), x:split(1)[2]
  end)
  for i = 1, 3 do
    local x, y = tensor{{1, 2, 3}, {4, 5, 6}} * i, tensor{{7, 8, 9}} * i
    local stacked, part = f(x, y)
    equals(stacked[1]:totable(), {{i, 0, 0, i, 0, 0}, {4 * i, 5 * i, 0, 4 * i, 5 * i, 0},
                                  {7 * i, 8 * i, 9 * i, 7 * i, 8 * i, 9 * i}})
    equals(stacked[{2, 3}]:totable(), {9 * i, 7 * i, 8 * i, 9 * i, 7 * i, 8 * i})
    part:zero_()
    equals(x[2]:sum():item(), 0)
  end
end

os.exit(lu.LuaUnit.run())
