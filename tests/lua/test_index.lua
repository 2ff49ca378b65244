-- x[key]: selection, ranges, assignment, what is out of range, # and pairs.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

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
