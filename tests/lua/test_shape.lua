-- Sizes, strides and views: nothing here moves or waits for a value, reshape's copies apart.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

TestQueries = {}

function TestQueries:test_sizes()
  local x = tensor.zeros(2, 3, 4)
  equals(x:size(), {2, 3, 4})
  equals(x.shape, {2, 3, 4})
  equals({x:size(1), x:size(3), x:size(-1), x:size(-3)}, {2, 4, 4, 2})
  equals({x:numel(), x:dim(), x.ndim}, {24, 3, 3})
  equals(x:stride(), {12, 4, 1})
  equals({x:stride(1), x:stride(-1)}, {12, 1})
  equals(tensor(1):size(), {})
  equals(tensor(1):stride(), {})
  equals(tensor(1):numel(), 1)
  equals(tensor(1):dim(), 0)
  equals(tensor.zeros(3, 0):numel(), 0)
  equals({x.dtype, x.device}, {"float32", "cpu"})
  equals(x.something, nil)
end

function TestQueries:test_the_shape_is_a_copy()
  local x = tensor.zeros(2, 3)
  x.shape[1] = 9
  x:size()[1] = 9
  equals(x.shape, {2, 3})
end

function TestQueries:test_contiguous()
  local x = tensor.zeros(3, 4)
  equals(x:is_contiguous(), true)
  equals(x:t():is_contiguous(), false)
  equals(x[2]:is_contiguous(), true)
  equals(x[{{}, 2}]:is_contiguous(), false)
  equals(x[{{2, 3}}]:is_contiguous(), true)
  equals(x[{{}, {1, 2}}]:is_contiguous(), false)
  equals(x[{{1, 3, 2}}]:is_contiguous(), false)
  equals(x[{{2, 2}, {1, 4, 2}}]:is_contiguous(), false)
  equals(tensor.zeros(1, 4):t():is_contiguous(), true)
  equals(tensor(1):is_contiguous(), true)
  equals(tensor.zeros(0, 3):t():is_contiguous(), true)
end

function TestQueries:test_errors()
  local x = tensor.zeros(2, 3)
  for _, name in ipairs {"size", "stride"} do
    raises(name .. ": dimension 3 is out of range for a tensor of size 2x3", x[name], x, 3)
    raises(name .. ": dimension 0 is out of range for a tensor of size 2x3", x[name], x, 0)
    raises(name .. ": dimension 1 is out of range for a tensor of size ()", x[name], tensor(1), 1)
    raises(name .. ": argument 2 must be an integer, not string", x[name], x, "1")
    raises(name .. ": 3 arguments are too many: at most 2", x[name], x, 1, 2)
  end
  for _, name in ipairs {"numel", "dim", "is_contiguous", "is_ready"} do
    raises(name .. ": argument 1 must be a tensor, not missing", x[name])
    raises(name .. ": argument 1 must be a tensor, not table", x[name], {})
  end
end

TestTranspose = {}

function TestTranspose:test_t()
  local x = tensor{{1, 2, 3}, {4, 5, 6}}
  equals(x:t():totable(), {{1, 4}, {2, 5}, {3, 6}})
  equals(x:t():stride(), {1, 3})
  lu.assertTrue(x:t():t() == x)
  equals(tensor{1, 2}:t():totable(), {1, 2})
  equals(tensor(1):t().shape, {})
  x:t()[{3, 1}] = 9
  equals(x[{1, 3}]:item(), 9)
  raises("t: wants at most 2 dimensions, not 3: use transpose", x.t, tensor.zeros(1, 1, 1))
  raises("t: 2 arguments are too many: at most 1", x.t, x, 1)
end

function TestTranspose:test_transpose()
  local x = tensor.arange(24):reshape(2, 3, 4)
  local y = x:transpose(1, 3)
  equals(y.shape, {4, 3, 2})
  equals(y:stride(), {1, 4, 12})
  for i = 1, 4 do
    for j = 1, 3 do
      for k = 1, 2 do equals(y[{i, j, k}]:item(), x[{k, j, i}]:item()) end
    end
  end
  equals(x:transpose(-1, 1).shape, {4, 3, 2})
  lu.assertTrue(x:transpose(2, 2) == x)
  raises("transpose: dimension 4 is out of range for a tensor of size 2x3x4", x.transpose, x, 1, 4)
  raises("transpose: argument 3 must be an integer, not missing", x.transpose, x, 1)
  raises("transpose: 4 arguments are too many: at most 3", x.transpose, x, 1, 2, 3)
end

TestReshape = {}

function TestReshape:test_views_of_contiguous_tensors()
  local x = tensor.arange(12)
  local y = x:reshape(3, 4)
  equals(y:totable(), {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}})
  y[{2, 2}] = 0
  equals(x[6]:item(), 0)
  equals(x:reshape({2, 6}).shape, {2, 6})
  equals(x:reshape(2, -1).shape, {2, 6})
  equals(x:reshape(-1).shape, {12})
  equals(x:reshape(-1, 12).shape, {1, 12})
  equals(x:reshape(1, 12, 1, 1).shape, {1, 12, 1, 1})
  equals(tensor{5}:reshape({}).shape, {})
  equals(tensor(5):reshape(1, 1).shape, {1, 1})
  equals(tensor(5):reshape(-1).shape, {1})
end

-- A view whenever the strides allow it: writing through it shows.
function TestReshape:test_views_and_copies()
  local function is_view(make, ...)
    local base = tensor.zeros(4, 6)
    make(base):reshape(...):fill_(1)
    return base:sum():item() > 0
  end
  local function rows(x) return x[{{2, 3}}] end
  local function columns(x) return x[{{}, {2, 5}}] end
  local function steps(x) return x[{{1, 4, 2}}] end
  local function turned(x) return x:t() end
  equals(is_view(rows, 12), true)
  equals(is_view(rows, 3, 4), true)
  equals(is_view(columns, 4, 2, 2), true)
  equals(is_view(columns, 2, 2, 4), true)
  equals(is_view(columns, 16), false)
  equals(is_view(columns, 4, 4, 1), true)
  equals(is_view(steps, 2, 3, 2), true)
  equals(is_view(steps, 12), false)
  equals(is_view(turned, 6, 2, 2), true)
  equals(is_view(turned, 2, 3, 4), true)
  equals(is_view(turned, 24), false)
  equals(is_view(turned, 4, 6), false)
end

function TestReshape:test_copies_have_the_values()
  local x = tensor.arange(24):reshape(4, 6)
  equals(x:t():reshape(24)[{{1, 6}}]:totable(), {1, 7, 13, 19, 2, 8})
  equals(x:t():reshape(4, 6):is_contiguous(), true)
  local before = x:t():reshape(24)
  x:zero_()
  equals(before:sum():item(), 300)
end

function TestReshape:test_random_views()
  local shapes = {{24}, {2, 12}, {4, 6}, {2, 3, 4}, {3, 1, 8}, {1, 24, 1}, {2, 2, 2, 3}, {6, 2, 2}}
  for _, from in ipairs(shapes) do
    local data = support.random_integers(24, -99, 99)
    for _, layout in ipairs(support.layouts(from, data)) do
      for _, to in ipairs(shapes) do
        support.assert_values(layout[2]:reshape(to), to, data, layout[1], 0)
      end
    end
  end
end

function TestReshape:test_empty()
  local x = tensor.zeros(0, 3)
  equals(x:reshape(3, 0).shape, {3, 0})
  equals(x:reshape(0).shape, {0})
  equals(x:reshape(-1, 3).shape, {0, 3})
  equals(x:t():reshape(5, 0, 2).shape, {5, 0, 2})
  raises("reshape: 0x3 has 0 elements, which do not make 0x-1", x.reshape, x, 0, -1)
end

function TestReshape:test_errors()
  local x = tensor.zeros(2, 3)
  raises("reshape: 2x3 has 6 elements, which do not make 4", x.reshape, x, 4)
  raises("reshape: 2x3 has 6 elements, which do not make ()", x.reshape, x, {})
  raises("reshape: 2x3 has 6 elements, which do not make 4x-1", x.reshape, x, 4, -1)
  raises("reshape: only one size can be -1", x.reshape, x, -1, -1)
  raises("reshape: size -2 is negative", x.reshape, x, -2)
  raises("reshape: size 1.5 is not an integer", x.reshape, x, 1.5)
  raises("reshape: a size is missing: numbers or a table", x.reshape, x)
  raises("reshape: 9 dimensions are too many: at most 8", x.reshape, x, 1, 1, 1, 1, 1, 1, 1, 2, 3)
  raises("reshape: 2x3 has 6 elements, which do not make 4611686018427387904x4", x.reshape, x,
         1 << 62, 4)
  raises("reshape: 2x3 has 6 elements, which do not make 4294967296x4294967296", x.reshape, x,
         1 << 32, 1 << 32)
end

TestLifetime = {}

function TestLifetime:test_a_view_keeps_the_storage()
  local view
  do
    local x = tensor.arange(100000)
    view = x:reshape(100, 1000):t()[3]
  end
  collectgarbage()
  for _ = 1, 10 do tensor.full({100000}, -1) end
  equals(view:sum():item(), 3 * 100 + 1000 * (99 * 100 // 2))
end

function TestLifetime:test_closing_one_handle()
  local x = tensor.ones(3)
  local view = x[{{1, 2}}]
  do local closed <close> = x end
  raises("sum: argument 1 is a tensor that has been closed", tensor.sum, x)
  equals(view:sum():item(), 2)
end

os.exit(lu.LuaUnit.run())
