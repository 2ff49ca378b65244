-- Writing into tensors: in-place operators, fill_, zero_, copy_, x[key] = value; through views,
-- over their own operands, and in order with everything read before and after.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises
local round = support.round

TestOperators = {}

function TestOperators:test_arithmetic()
  local x = tensor{{1, 2}, {3, 4}}
  local same = x:add_(1)
  lu.assertTrue(rawequal(same, x))
  equals(x:totable(), {{2, 3}, {4, 5}})
  equals(x:sub_(tensor{1, 2}):totable(), {{1, 1}, {3, 3}})
  equals(x:mul_(tensor{{2}, {3}}):totable(), {{2, 2}, {9, 9}})
  equals(x:div_(2):totable(), {{1, 1}, {4.5, 4.5}})
end

local OF_THEIR_OWN = {} -- those that take other operands, or draw random numbers
for name in ("addmm addcmul addcdiv lerp bernoulli normal cumsum cumprod"):gmatch "%l+" do
  OF_THEIR_OWN[name] = true
end

-- Whether a function is of one or two operands, as element-wise ones are.
local function is_operator(f)
  local x = tensor({1}, {dtype = "int32"})
  return f and (pcall(f, x) or pcall(f, x, x))
end

-- The in-place form of every operator gives the bits of the other form, and its own tensor.
function TestOperators:test_every_form()
  for name, f in pairs(tensor) do
    local base = type(f) == "function" and name:match "^(.*%l)_$"
    if base and is_operator(tensor[base]) and not OF_THEIR_OWN[base] then
      local x1 = tensor{1}
      local wants_bits = not pcall(tensor[base], x1) and not pcall(tensor[base], x1, 2)
      for _, dtype in ipairs(wants_bits and {"int32", "uint8"} or {"float32", "float64"}) do
        local x = support.tensor({3, 7}, support.random_data(21, 0.5, 4, dtype), dtype)
        local y = support.tensor({7}, support.random_data(7, 0.5, 4, dtype), dtype)
        local takes_two = not pcall(tensor[base], x)
        for _, other in ipairs(takes_two and {y, 2} or {false}) do
          local operand = takes_two and other or nil
          local expected = tensor[base](x, operand)
          local target = x:clone()
          local result
          if takes_two then result = f(target, operand) else result = f(target) end
          lu.assertTrue(rawequal(result, target), name)
          lu.assertEquals(target.dtype, dtype)
          local values = expected:to(dtype) -- of tests: bools
          lu.assertTrue(target:eq(values):logical_or(values:ne(values)):all():item(), name)
        end
      end
    end
  end
end

function TestOperators:test_fill_zero_copy()
  local x = tensor.ones(2, 3)
  lu.assertTrue(rawequal(x:fill_(7), x))
  equals(x:totable(), {{7, 7, 7}, {7, 7, 7}})
  lu.assertTrue(rawequal(x:zero_(), x))
  equals(x:totable(), {{0, 0, 0}, {0, 0, 0}})
  lu.assertTrue(rawequal(x:copy_(tensor{1, 2, 3}), x))
  equals(x:totable(), {{1, 2, 3}, {1, 2, 3}})
  equals(x:copy_(tensor{{8}, {9}}):totable(), {{8, 8, 8}, {9, 9, 9}})
  equals(x:copy_(tensor(4)):totable(), {{4, 4, 4}, {4, 4, 4}})
  equals(tensor.zeros(0, 3):fill_(1):copy_(tensor{1, 2, 3}):add_(1).shape, {0, 3})
end

TestViews = {}

function TestViews:test_writing_through()
  local x = tensor.zeros(3, 4)
  x[2]:fill_(5)
  x:t()[1]:add_(1)
  x[{{}, {2, 4, 2}}]:sub_(2)
  x[{3, 3}]:copy_(tensor(9))
  equals(x:totable(), {{1, -2, 0, -2}, {6, 3, 5, 3}, {1, -2, 9, -2}})
  x:reshape(12):mul_(2)
  equals(x[1]:totable(), {2, -4, 0, -4})
end

function TestViews:test_transposed_target()
  local x = tensor.arange(6):reshape(2, 3)
  x:t():add_(tensor{{10, 20}, {30, 40}, {50, 60}})
  equals(x:totable(), {{11, 32, 53}, {24, 45, 66}})
end

-- A source that shares memory with the destination is read first, all of it.
function TestViews:test_overlap()
  local x = tensor.arange(10)
  x[{{2, 10}}]:copy_(x[{{1, 9}}])
  equals(x:totable(), {1, 1, 2, 3, 4, 5, 6, 7, 8, 9})
  x = tensor.arange(10)
  x[{{1, 9}}]:copy_(x[{{2, 10}}])
  equals(x:totable(), {2, 3, 4, 5, 6, 7, 8, 9, 10, 10})
  x = tensor.arange(10)
  x[{{2, 10}}]:add_(x[{{1, 9}}])
  equals(x:totable(), {1, 3, 5, 7, 9, 11, 13, 15, 17, 19})
  x = tensor.arange(4):reshape(2, 2)
  x:copy_(x:t())
  equals(x:totable(), {{1, 3}, {2, 4}})
  x:add_(x:t())
  equals(x:totable(), {{2, 5}, {5, 8}})
  x:sub_(x[1])
  equals(x:totable(), {{0, 0}, {3, 3}})
  x = tensor.arange(4)
  x:mul_(x[2])
  equals(x:totable(), {2, 4, 6, 8})
  x:add_(x)
  equals(x:totable(), {4, 8, 12, 16})
end

function TestViews:test_large_overlap()
  local n = 100003
  local x = tensor.arange(n)
  x[{{2, n}}]:add_(x[{{1, n - 1}}])
  local expected = tensor.arange(n) * 2 - 1
  lu.assertTrue(x == expected)
  local square = tensor.arange(301 * 301):reshape(301, 301)
  local turned = square:t():clone()
  square:copy_(square:t())
  lu.assertTrue(square == turned)
end

TestAssignment = {}

function TestAssignment:test_keys()
  local x = tensor.zeros(3, 3)
  x[1] = 1
  x[-1] = tensor{7, 8, 9}
  x[{2, 2}] = 5
  x[{{1, 2}, 3}] = tensor{4, 6}
  equals(x:totable(), {{1, 1, 4}, {0, 5, 6}, {7, 8, 9}})
  x[{}] = 2
  equals(x:totable(), {{2, 2, 2}, {2, 2, 2}, {2, 2, 2}})
  x[{{}, {1, 3, 2}}] = tensor{{1}, {2}, {3}}
  equals(x:totable(), {{1, 2, 1}, {2, 2, 2}, {3, 2, 3}})
  x[{{3, 2}}] = 9 -- an empty range
  equals(x:sum():item(), 18)
  local scalar = tensor(1)
  scalar[{}] = 4
  equals(scalar:item(), 4)
end

function TestAssignment:test_wrong()
  local x = tensor.zeros(2, 3)
  raises("index: index 3 is out of range for dimension 1 of a tensor of size 2x3",
         function() x[3] = 1 end)
  raises("index: cannot broadcast 2 to the size of the part written, 3",
         function() x[1] = tensor{1, 2} end)
  raises("index: cannot broadcast 1x3 to the size of the part written, 3",
         function() x[1] = tensor{{1, 2, 3}} end)
  raises("index: the value must be a number or a tensor, not string", function() x[1] = "1" end)
  raises("index: the value must be a number or a tensor, not nil", function() x[1] = nil end)
  raises("index: a tensor has no field 'shape' to set", function() x.shape = {1} end)
  raises("index: an index must be an integer, a table or a tensor, not boolean",
         function() x[true] = 1 end)
  equals(x:sum():item(), 0)
end

TestErrors = {}

function TestErrors:test_does_not_broadcast()
  local x = tensor.zeros(2, 3)
  for _, name in ipairs {"add_", "sub_", "mul_", "div_", "copy_", "pow_", "maximum_"} do
    local text = name .. ": cannot broadcast %s to the size of the tensor written, 2x3"
    raises(text:format "2", x[name], x, tensor{1, 2})
    raises(text:format "1x2x3", x[name], x, tensor.ones(1, 2, 3))
    raises(text:format "3x3", x[name], x, tensor.ones(3, 3))
  end
  equals(x:totable(), {{0, 0, 0}, {0, 0, 0}})
end

function TestErrors:test_arguments()
  local x = tensor{1}
  raises("add_: argument 1 must be a tensor, not number", tensor.add_, 1, x)
  raises("add_: operand 2 must be a tensor or a number, not missing", tensor.add_, x)
  raises("add_: 3 arguments are too many: at most 2", tensor.add_, x, 1, 2)
  raises("fill_: argument 2 must be a number, not userdata", tensor.fill_, x, x)
  raises("fill_: argument 2 must be a number, not missing", tensor.fill_, x)
  raises("zero_: 2 arguments are too many: at most 1", tensor.zero_, x, 1)
  raises("copy_: argument 2 must be a tensor, not number", tensor.copy_, x, 1)
end

TestDtypes = {}

-- The dtype of the destination stays; what is computed is rounded to it.
function TestDtypes:test_casts()
  local single, double = tensor{1}, tensor({0.1}, {dtype = "float64"})
  equals(single:add_(double).dtype, "float32")
  equals(single:item(), round("float32", 1.1))
  equals(double:add_(single).dtype, "float64")
  equals(double:item(), 0.1 + round("float32", 1.1))
  equals(tensor{0}:copy_(tensor({0.1}, {dtype = "float64"})):item(), round("float32", 0.1))
  equals(tensor({0}, {dtype = "float64"}):copy_(tensor{0.1}):item(), round("float32", 0.1))
  equals(tensor({0}, {dtype = "float64"}):fill_(0.1):item(), 0.1)
  equals(tensor{0}:copy_(tensor({1e300}, {dtype = "float64"})):item(), math.huge)
end

function TestDtypes:test_clone_and_to()
  local x = tensor{{1, 2}, {3, 4}}
  local copy, turned = x:clone(), x:t():clone()
  x:zero_()
  equals(copy:totable(), {{1, 2}, {3, 4}})
  equals(turned:totable(), {{1, 3}, {2, 4}})
  equals(turned:is_contiguous(), true)
  lu.assertTrue(rawequal(x:to("float32"), x))
  lu.assertTrue(rawequal(x:to("cpu"), x))
  lu.assertTrue(rawequal(x:to{}, x))
  equals(x:to("float64").dtype, "float64")
  equals(x:to{dtype = "float64"}.dtype, "float64")
  equals(x:to{device = "cpu", dtype = "float64"}.dtype, "float64")
  local wide = copy:t():to("float64")
  copy:zero_()
  equals(wide:totable(), {{1, 3}, {2, 4}})
  raises("to: 'cuda' is neither a dtype ('float32', 'int64', ...) nor a device ('cpu')", x.to, x,
         "cuda")
  raises("to: unknown option 'typ': dtype or device", x.to, x, {typ = 1})
  lu.assertStrContains(select(2, pcall(x.to, x)), "to: ")
end

function TestDtypes:test_to_does_not_ignore_what_it_does_not_know()
  lu.assertFalse(pcall(tensor.to, tensor{1}, {"float64"}))
end

TestOrder = {}

function TestOrder:test_a_value_does_not_change_when_its_operand_does()
  local x = tensor.ones(1000)
  local y = x * 2
  x:add_(1)
  local z = x:clone()
  x:zero_()
  equals(y:sum():item(), 2000)
  equals(z:sum():item(), 2000)
  equals(x:sum():item(), 0)
end

-- A temporary made from a table may die before the command that reads it has run.
function TestOrder:test_temporaries_from_tables()
  local busy = tensor.ones(300, 300)
  for _ = 1, 5 do busy = busy:mm(busy) / 300 end
  local sums = tensor.zeros(3)
  for i = 1, 300 do
    sums:add_(tensor{1, 2, 3})
    if i % 7 == 0 then collectgarbage() end
  end
  equals(sums:totable(), {300, 600, 900})
  equals(busy[1][1]:item(), 1)
end

-- Long random sequences on views of a few tensors, against the same on plain tables.
local SIZE, STORAGES = 12, 4

-- A view: which elements (from 1) of which storage, and the tensor's view of them.
local function random_view(tensors)
  local s = math.random(STORAGES)
  local kind, t = math.random(5), tensors[s]
  local elements, step, first = {}, 1, 1
  local shape = {SIZE}
  if kind == 2 then -- a range of half the size, so that ranges of the other kind fit
    first = math.random(1, SIZE // 2)
    shape, t = {SIZE // 2}, t[{{first, first + SIZE // 2 - 1}}]
  elseif kind == 3 then
    first, step = math.random(2), 2
    shape, t = {SIZE // 2}, t[{{first, SIZE, 2}}]
  elseif kind == 4 then -- transposed
    shape, t = {3, SIZE // 3}, t:reshape(SIZE // 3, 3):t()
    for i = 1, 3 do
      for j = 1, SIZE // 3 do elements[#elements + 1] = (j - 1) * 3 + i end
    end
    return s, elements, t, shape
  elseif kind == 5 then
    first = math.random(SIZE)
    shape, t = {}, t[first]
  end
  for i = 1, support.numel(shape) do elements[i] = first + (i - 1) * step end
  return s, elements, t, shape
end

local OPERATIONS = {
  add_ = function(x, y) return x + y end,
  sub_ = function(x, y) return x - y end,
  mul_ = function(x, y) return x * y end,
  copy_ = function(_, y) return y end,
  maximum_ = function(x, y) return math.max(x, y) end,
}
local OPERATION_NAMES = {"add_", "sub_", "mul_", "copy_", "maximum_"}

local function random_sequence(steps)
  local tensors, model, kept = {}, {}, {}
  for s = 1, STORAGES do
    model[s] = support.random_integers(SIZE, -3, 3)
    tensors[s] = tensor(model[s])
  end
  local function wrap(x) -- keeps numbers small integers, which every operation makes exactly
    return math.abs(x) > 1000 and x % 7 or x
  end
  local function wrap_tensor(s)
    for i = 1, SIZE do
      if wrap(model[s][i]) ~= model[s][i] then
        tensors[s]:remainder_(7)
        for j = 1, SIZE do model[s][j] = model[s][j] % 7 end
        return
      end
    end
  end
  for step = 1, steps do
    local s, to, x, shape = random_view(tensors)
    local name = OPERATION_NAMES[math.random(#OPERATION_NAMES)]
    local choice = math.random(4)
    if choice == 1 then
      local number = math.random(-3, 3)
      if name == "copy_" then x:fill_(number) else x[name](x, number) end
      for i = 1, #to do model[s][to[i]] = OPERATIONS[name](model[s][to[i]], number) end
    elseif choice == 2 then -- what was read before keeps its value
      local values = {}
      for i = 1, #to do values[i] = model[s][to[i]] + 1.0 end
      kept[#kept + 1] = {x + 1, shape, values}
    else
      local from_s, from, y, from_shape = random_view(tensors)
      local fits = #from_shape == 0 or support.shape_text(from_shape) == support.shape_text(shape)
                   or (#from == 4 and #from_shape == 1 and #shape == 2)
      if fits then
        local values = {}
        for i = 1, #to do values[i] = model[from_s][from[(i - 1) % #from + 1]] end
        x[name](x, y)
        for i = 1, #to do model[s][to[i]] = OPERATIONS[name](model[s][to[i]], values[i]) end
      end
    end
    wrap_tensor(s)
    if math.random(50) == 1 then
      local i = math.random(SIZE)
      equals(tensors[s][i]:item(), model[s][i], step)
    end
  end
  for s = 1, STORAGES do
    local values = {}
    for i = 1, SIZE do values[i] = model[s][i] + 0.0 end
    support.assert_values(tensors[s], {SIZE}, values, "storage " .. s, 0)
  end
  for i, check in ipairs(kept) do
    support.assert_values(check[1], check[2], check[3], "kept " .. i, 0)
  end
end

function TestOrder:test_random_sequences()
  for _ = 1, support.slow and 5 or 40 do random_sequence(500) end
end

function TestOrder:test_random_sequences_on_other_thread_counts()
  support.each_thread_count(function()
    for _ = 1, support.slow and 2 or 10 do random_sequence(300) end
  end)
end

os.exit(lu.LuaUnit.run())
