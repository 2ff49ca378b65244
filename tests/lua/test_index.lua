-- x[key]: selection, ranges, indices and masks (with NumPy as the oracle), assignment, what is out
-- of range, # and pairs.

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

TestSelection = {}

function TestSelection:test_integers()
  local x = tensor{{1, 2, 3}, {4, 5, 6}}
  equals(x[1]:totable(), {1, 2, 3})
  equals(x[-1]:totable(), {4, 5, 6})
  equals(x[-2]:totable(), {1, 2, 3})
  equals(x[2.0]:totable(), {4, 5, 6})
  equals(x[2][3]:item(), 6)
  equals(x[2][-3]:item(), 4)
  equals(x[{2, 3}]:item(), 6)
  equals(x[{-1, -1}]:item(), 6)
  equals(x[{1}]:totable(), {1, 2, 3})
  equals(x[{}]:totable(), {{1, 2, 3}, {4, 5, 6}})
  equals(tensor(7)[{}]:item(), 7)
end

function TestSelection:test_gives_a_tensor()
  local x = tensor{1, 2}[2]
  equals(type(x), "userdata")
  equals(x.shape, {})
end

function TestSelection:test_out_of_range()
  local x = tensor.zeros(2, 3)
  local function index(key) return function() return x[key] end end
  local text = "index: index %d is out of range for dimension %d of a tensor of size %s"
  raises(text:format(3, 1, "2x3"), index(3))
  raises(text:format(0, 1, "2x3"), index(0))
  raises(text:format(-3, 1, "2x3"), index(-3))
  raises(text:format(math.maxinteger, 1, "2x3"), index(math.maxinteger))
  raises(text:format(math.mininteger, 1, "2x3"), index(math.mininteger))
  raises("index: 3 indices are too many for a tensor of size 2x3", index{1, 1, 1})
  raises("index: 1 indices are too many for a tensor of size ()",
         function() return tensor(1)[1] end)
  raises(text:format(1, 1, "0"), function() return tensor{}[1] end)
end

-- The whole key belongs to one tensor, so its own dimensions and size are named.
function TestSelection:test_out_of_range_names_the_dimension()
  local x = tensor.zeros(2, 3, 4)
  local text = "index: index %d is out of range for dimension %d of a tensor of size 2x3x4"
  raises(text:format(4, 2), function() return x[{1, 4}] end)
  raises(text:format(5, 3), function() return x[{1, 1, 5}] end)
  raises(text:format(-5, 3), function() return x[{{}, 1, -5}] end)
end

function TestSelection:test_wrong_keys()
  local x = tensor.zeros(2, 3)
  raises("index: an index must be an integer or a range, not 1.5", function() return x[1.5] end)
  raises("index: an index must be an integer, a table or a tensor, not boolean",
         function() return x[true] end)
  raises("index: an index must be an integer or a range, not string",
         function() return x[{"1"}] end)
  raises("index: an index must be an integer or a range, not nil",
         function() return x[{nil, 2}] end)
  lu.assertStrContains(select(2, pcall(function() return x[0 / 0] end)), "index: ")
  lu.assertStrContains(select(2, pcall(function() return x[x] end)), "index: ")
  equals(x.unknown, nil)
  equals(x["1"], nil)
end

TestRanges = {}

-- Every range of a dimension of 5, against a loop.
function TestRanges:test_all()
  local size = 5
  local x = tensor{10, 20, 30, 40, 50}
  for first = 1, size do
    for last = 1, size do
      for step = 1, size + 1 do
        local expected = {}
        for i = first, last, step do expected[#expected + 1] = i * 10 end
        local signs = {{first, last}, {first - size - 1, last}, {first, last - size - 1},
                       {first - size - 1, last - size - 1}}
        for _, range in ipairs(signs) do
          range[3] = step
          equals(x[{range}]:totable(), expected, ("{%d, %d, %d}"):format(table.unpack(range)))
        end
        if step == 1 then equals(x[{{first, last}}]:totable(), expected) end
      end
    end
  end
end

function TestRanges:test_empty()
  local x = tensor.arange(5)
  equals(x[{{3, 2}}].shape, {0})
  equals(x[{{1, 0}}].shape, {0})
  equals(x[{{6, 5}}].shape, {0})
  equals(x[{{5, 1}}].shape, {0})
  equals(tensor{}[{{1, 0}}].shape, {0})
  equals(tensor{}[{{}}].shape, {0})
  equals(x[{{3, 2}}]:sum():item(), 0)
  equals(tensor.zeros(2, 3)[{{2, 1}, 2}].shape, {0})
end

function TestRanges:test_nested()
  local x = tensor.arange(24):reshape(4, 6)
  equals(x[{{1, 3}, {}}].shape, {3, 6})
  equals(x[{{}, {2, 6, 2}}]:totable(),
         {{2, 4, 6}, {8, 10, 12}, {14, 16, 18}, {20, 22, 24}})
  equals(x[{{2, 3}, -1}]:totable(), {12, 18})
  equals(x[{3, {1, -1, 5}}]:totable(), {13, 18})
  equals(x[{{}}].shape, {4, 6})
  local y = x:reshape(2, 2, 6)
  equals(y[{2, {}, {5, 6}}]:totable(), {{17, 18}, {23, 24}})
  equals(y[{{}, 1, {}}].shape, {2, 6})
  local z = x[{{1, 4, 2}}][{{}, {1, 6, 3}}]:t()[{{2, 2}}]
  equals(z:totable(), {{4, 16}})
end

function TestRanges:test_wrong()
  local x = tensor.zeros(2, 3)
  local function range(...)
    local key = {...}
    return function() return x[key] end
  end
  local text = "index: range {%d, %d} is out of range for dimension %d of a tensor of size 2x3"
  raises(text:format(1, 3, 1), range{1, 3})
  raises(text:format(0, 1, 1), range{0, 1})
  raises(text:format(-3, 1, 1), range{-3, 1})
  raises(text:format(4, 2, 1), range{4, 2})
  raises(text:format(1, math.maxinteger, 1), range{1, math.maxinteger})
  raises(text:format(math.mininteger, 1, 1), range{math.mininteger, 1})
  raises(text:format(1, 5, 2), range({}, {1, 5}))
  raises("index: a range's step must be at least 1", range{1, 2, 0})
  raises("index: a range's step must be at least 1", range{2, 1, -1})
  raises("index: a range is {first, last} or {first, last, step}, or {} for all", range{1})
  raises("index: a range is {first, last} or {first, last, step}, or {} for all", range{1, 2, 1, 1})
  raises("index: a range wants integers, not 1.5", range{1.5, 2})
  raises("index: a range wants integers, not a", range{1, "a"})
end

-- A step beyond the end takes the first element only, whatever it is.
function TestRanges:test_huge_step()
  local x = tensor.arange(6):reshape(2, 3)
  for _, step in ipairs {1 << 40, math.maxinteger} do
    equals(x[{{1, 2, step}}]:totable(), {{1, 2, 3}})
    equals(x[{{}, {2, 3, step}}]:totable(), {{2}, {5}})
    equals(x[{{2, 2, step}}]:stride(1) >= 0, true)
  end
end

TestViews = {}

function TestViews:test_share_memory()
  local x = tensor.zeros(3, 3)
  x[2]:fill_(1)
  x[{{}, 3}]:fill_(2)
  x[{{1, 3, 2}, {1, 2}}]:add_(3)
  equals(x:totable(), {{3, 3, 2}, {1, 1, 2}, {3, 3, 2}})
  local row = x[1]
  x:zero_()
  equals(row:totable(), {0, 0, 0})
end

function TestViews:test_assignment()
  local x = tensor.zeros(2, 2)
  x[1][2] = 5
  x[{2, 1}] = tensor(6)
  equals(x:totable(), {{0, 5}, {6, 0}})
  x[{{}, {2, 2}}] = tensor{{1}, {2}}
  equals(x:totable(), {{0, 1}, {6, 2}})
  x[{}] = x:t()
  equals(x:totable(), {{0, 6}, {1, 2}})
  x[1] = x[2]
  equals(x:totable(), {{1, 2}, {1, 2}})
end

-- A key for a shape; the same for Python in two stages, since PyTorch, unlike NumPy, takes numbers
-- first.  Gives also how many tensors with dimensions are in it.
local function random_key(batch, shape, shared)
  local key, first, second, d = {}, {}, {}, 1
  local masks, tensors = 0, 0
  while d <= #shape do
    local size, kind = shape[d], random(6)
    if kind == 1 and size > 0 then
      local i = random(size)
      key[#key + 1] = random(2) == 1 and i or i - size - 1
      first[#first + 1] = tostring(i - 1)
    elseif kind == 2 and size > 0 then
      local a, step = random(size), random(2)
      local b = random(a, size)
      key[#key + 1] = {a, b, step}
      first[#first + 1] = ("slice(%d, %d, %d)"):format(a - 1, b, step)
      second[#second + 1] = "slice(None)"
    elseif kind >= 5 and size > 0 then
      -- A shape that broadcasts with those of the others.
      local own_shape = {}
      for i = random(#shared + 1), #shared do
        own_shape[#own_shape + 1] = random(4) == 1 and 1 or shared[i]
      end
      if masks > 0 then own_shape = {1} end
      local index, text = indices(batch, own_shape, size)
      key[#key + 1] = index
      if #own_shape == 0 then
        first[#first + 1] = text
      else
        first[#first + 1] = "slice(None)"
        second[#second + 1] = text
        tensors = tensors + 1
      end
    elseif kind == 4 and masks + tensors == 0 then
      local mask_shape = {size}
      if d < #shape and random(2) == 1 then mask_shape[2] = shape[d + 1] end
      local mask, text = operand(batch, mask_shape, "bool")
      key[#key + 1] = mask
      for _ = 1, #mask_shape do first[#first + 1] = "slice(None)" end
      second[#second + 1] = text
      d = d + #mask_shape - 1
      masks = masks + 1
    else
      key[#key + 1] = {}
      first[#first + 1] = "slice(None)"
      second[#second + 1] = "slice(None)"
    end
    d = d + 1
    if random(8) == 1 then break end
  end
  local lone = #key == 1 and type(key[1]) == "userdata" and random(2) == 1
  local function tuple(list) return "(" .. table.concat(list, ",") .. (#list > 0 and "," or "") end
  return lone and key[1] or key, tuple(first) .. "Ellipsis,)", tuple(second) .. ")"
end

TestKeys = {}

function TestKeys:test_reading()
  local batch = new_batch()
  for round = 1, ROUNDS * 3 do
    local shape, dtype = random_shape(1, 4, 4), one_of(DTYPES)
    local x, text = operand(batch, shape, dtype)
    local key, first, second = random_key(batch, shape, random_shape(0, 2, 3))
    batch.add(("x = %s\nout(x[%s][%s])"):format(text, first, second), x[key],
              ("round %d: %s[%s][%s]"):format(round, support.shape_text(shape), first, second))
  end
  batch.compare()
end

function TestKeys:test_writing()
  local batch = new_batch()
  for round = 1, ROUNDS * 3 do
    local shape, dtype = random_shape(1, 4, 4), one_of(DTYPES)
    local x, text = operand(batch, shape, dtype)
    local code = {"x = " .. text}
    local key, first, second = random_key(batch, shape, random_shape(0, 2, 3))
    code[2] = "k = " .. second
    local value_shape = narrower(x[key].shape)
    local kind, value = random(3)
    if kind == 1 then
      value = one_of {0, 1, 3}
      code[#code + 1] = ("v = np.asarray(%d).astype(x.dtype)"):format(value)
    else
      value, text = operand(batch, value_shape, kind == 2 and dtype or one_of(DTYPES))
      code[#code + 1] = "v = " .. text
    end
    code[#code + 1] = ("w = x[%s]\nw[k] = v.astype(x.dtype)\nout(x)"):format(first)
    local y = own(x, random(2) == 1)
    y[key] = value
    batch.add(table.concat(code, "\n"), y,
              ("round %d: %s[%s][%s]"):format(round, support.shape_text(shape), first, second))
  end
  batch.compare()
end

-- Adds in order, wherever it goes several times.
function TestKeys:test_index_put()
  local batch = new_batch()
  for round = 1, ROUNDS do
    local shape, dtype = random_shape(1, 3, 4), one_of(DTYPES)
    local x, text = operand(batch, shape, dtype)
    local key, first, second = random_key(batch, shape, random_shape(0, 2, 6))
    local value, value_text = operand(batch, narrower(x[key].shape), dtype)
    local y = random(2) == 1 and x:index_put(key, value, true)
              or own(x):index_put_(key, value, true)
    batch.add(("x = %s\nk = %s\nv = %s\nw = x[%s]\nnp.add.at(w, k, v)\nout(x)"):format(text, second,
              value_text, first), y, "round " .. round)
  end
  batch.compare()
end

-- A mask without dimensions picks all or nothing, with one more dimension.
function TestKeys:test_mask_without_dimensions()
  local x = tensor{1, 2}
  equals(x[x:sum():gt(0)].shape, {1, 2})
  equals(x[x:sum():lt(0)].shape, {0, 2})
  local s = tensor(3)
  equals(s[s:gt(2)]:totable(), {3})
  s[s:gt(2)] = 7
  equals(s:item(), 7)
  s[s:lt(2)] = 8
  equals(s:item(), 7)
  x[x:sum():gt(0)] = tensor{{5, 6}}
  equals(x:totable(), {5, 6})
end

function TestKeys:test_api_examples()
  local x = tensor.arange(24):reshape(2, 3, 4)
  equals(x[{int{2, 1}, {}, 3}]:totable(), {{15, 19, 23}, {3, 7, 11}})
  equals(x[{int{1, 2}, {}, int{1, 2, 2, 2}:reshape(2, 2)[1]}].shape, {2, 3}) -- to the front
  equals(x[{1, int{1, 2}, int{1, 2}}]:totable(), {1, 6})
  equals(x[{{}, bool{true, false, true}}].shape, {2, 2, 4})
  equals(x[-1][int{-1, -3}]:totable(), {{21, 22, 23, 24}, {13, 14, 15, 16}})
  equals(x[int(2)].shape, {3, 4})
  equals(tensor.index(x, int{1}).shape, {1, 3, 4})
end

-- What is read is a tensor of its own, not a view.
function TestKeys:test_copies()
  local x = tensor{1, 2, 3}
  local y = x[int{1, 2}]
  y:zero_()
  equals(x:totable(), {1, 2, 3})
  equals(x[bool{true, true, true}]:fill_(5):totable(), {5, 5, 5})
  equals(x:totable(), {1, 2, 3})
end

-- What is written, the values and the indices, may be one memory.
function TestKeys:test_aliases()
  local x = int{2, 3, 1}
  x[x] = x
  equals(x:totable(), {1, 2, 3})
  x = int{2, 3, 1}
  x[x] = x[{{1, 3}}] * 1 + x -- the key is read before
  equals(x:totable(), {2, 4, 6})
  x = tensor{1, 2, 3, 4}
  x[int{1, 2, 3}] = x[{{2, 4}}]
  equals(x:totable(), {2, 3, 4, 4})
  x[{{2, 4}}][int{1, 2, 3}] = x[{{1, 3}}]
  equals(x:totable(), {2, 2, 3, 4})
  x[x:gt(2)] = x[{{1, 2}}]
  equals(x:totable(), {2, 2, 2, 2})
  local b = bool{true, false, true}
  b[b] = bool{false, true}
  equals(b:totable(), {false, false, true})
  b[b:logical_not()] = b[{{2, 3}}]
  equals(b:totable(), {false, true, true})
  b[b] = false
  equals(b:totable(), {false, false, false})
  local m = tensor.arange(9):reshape(3, 3)
  m[int{1, 2, 3}] = m:t()
  equals(m:totable(), {{1, 4, 7}, {2, 5, 8}, {3, 6, 9}})
  m:scatter_(1, int{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}}, m:t())
  equals(m:totable(), {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})
  local i = int{{2, 1}, {1, 2}}
  i:scatter_(1, i, i:t())
  equals(i:totable(), {{1, 1}, {2, 2}})
  m:put_(int{1, 2, 3, 4, 5, 6, 7, 8, 9}, m:t())
  equals(m:totable(), {{1, 4, 7}, {2, 5, 8}, {3, 6, 9}})
  m:index_copy_(1, int{3, 2, 1}, m)
  equals(m[1]:totable(), {3, 6, 9})
  m:masked_scatter_(m:gt(0), m:t())
  equals(m:totable(), {{3, 2, 1}, {6, 5, 4}, {9, 8, 7}})
end

function TestKeys:test_wrong()
  local x = tensor.zeros(2, 3)
  local function index(key) return function() return x[key] end end
  local function set(key, value) return function() x[key] = value end end
  raises("index: a tensor of indices must be of integers or bools, not of float32", index(x))
  raises("index: a mask of size 3 does not fit dimension 1 of a tensor of size 2x3",
         index(bool{true, false, true}))
  raises("index: a mask of size 2 does not fit dimension 2 of a tensor of size 2x3",
         index{{}, bool{true, false}})
  raises("index: 3 indices are too many for a tensor of size 2x3",
         index{x:gt(0), 1})
  raises("index: 1 indices are too many for a tensor of size ()",
         function() return tensor(1)[int{1}] end)
  raises("index: cannot broadcast 2 with 3: sizes 2 and 3 differ in dimension 1",
         index{int{1, 1}, int{1, 1, 1}})
  raises("index: a mask in a table must have dimensions: x[mask] takes one without",
         index{tensor(1):gt(0)})
  raises("index: 9 dimensions are too many: at most 8",
         index{{}, tensor.zeros(1, 1, 1, 1, 1, 1, 1, 1, {dtype = "int64"})})
  raises("index: cannot broadcast 2 to the size of the part written, 3x3",
         set(int{1, 1, 2}, tensor{1, 2}))
  raises("index: cannot broadcast 2x2 to what a mask of size 2 picks from 2x3",
         set(bool{true, false}, tensor{{1, 2}, {1, 2}}))
  raises("index: the value must be a number or a tensor, not string", set(int{1}, "a"))
  raises("index: an index is a tensor that has been closed", function()
    local closed = int{1}
    do local _ <close> = closed end
    return x[{closed}]
  end)
  equals(x:sum():item(), 0)
end

TestWalking = {}

function TestWalking:test_length()
  equals(#tensor.zeros(4, 2), 4)
  equals(#tensor{}, 0)
  equals(#tensor.zeros(4, 2)[1], 2)
  raises("#: a 0-dimensional tensor has no length", function() return #tensor(1) end)
end

function TestWalking:test_pairs()
  local seen = {}
  for i, row in pairs(tensor{{1, 2}, {3, 4}, {5, 6}}) do seen[i] = row:totable() end
  equals(seen, {{1, 2}, {3, 4}, {5, 6}})
  for _ in pairs(tensor{}) do error "has no rows" end
  local x = tensor.zeros(3)
  for i, element in pairs(x) do element:fill_(i) end
  equals(x:totable(), {1, 2, 3})
  raises("pairs: a 0-dimensional tensor has no rows", function() return pairs(tensor(1)) end)
end

-- The iterator can be called by hand, with anything.
function TestWalking:test_iterator_alone()
  local f, x, zero = pairs(tensor{1, 2})
  equals(zero, 0)
  equals(select("#", f(x, 2)), 0)
  equals(select("#", f(x, -5)), 0)
  equals(select("#", f(x, math.maxinteger)), 0)
  lu.assertFalse(pcall(f, x, "a"))
  lu.assertFalse(pcall(f, 5, 0))
  -- Memory that held larger shapes before, for a 0-dimensional tensor that looks at it.
  for _ = 1, 2000 do tensor.zeros(5, 5, 5, 5, 5, 5, 5, 5) end
  collectgarbage()
  local scalars = {}
  for i = 1, 2000 do
    scalars[i] = tensor.zeros(5, 5)[{1, 1}]
    local ok, i_given = pcall(f, scalars[i], 0)
    lu.assertTrue(not ok or i_given == nil, "a row of a 0-dimensional tensor")
  end
end

os.exit(lu.LuaUnit.run())
