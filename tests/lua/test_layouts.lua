-- Operands in every layout, of sizes at which they are packed tile by tile: permuted, stepped,
-- broadcast, at an offset, in another dtype.  The oracle is a model of views over a flat list, and
-- NumPy's own strides; no value may differ in a bit, with any instruction set.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local round = support.round

local DTYPES = {"float32", "float64"}
local SMALL = support.slow and 1500 or 5000 -- elements of a case

-- ---- views, modelled ----

-- A tensor of distinct values in memory, a view of all of it, and the view's model: the list of the
-- values in memory, where it begins and its strides.
local function base(shape, dtype)
  local count = support.numel(shape)
  local values = support.random_data(count, -100, 100, dtype)
  local view = {tensor = support.tensor(shape, values, dtype), values = values, first = 1,
                shape = {table.unpack(shape)}, strides = {}}
  local stride = 1
  for d = #shape, 1, -1 do
    view.strides[d] = stride
    stride = stride * shape[d]
  end
  return view
end

local function swap(view, a, b)
  view.tensor = view.tensor:transpose(a, b)
  view.shape[a], view.shape[b] = view.shape[b], view.shape[a]
  view.strides[a], view.strides[b] = view.strides[b], view.strides[a]
end

local function range(view, d, first, step)
  local key = {}
  for i = 1, #view.shape do key[i] = {} end
  local size = (view.shape[d] - first) // step + 1
  key[d] = {first, first + (size - 1) * step, step}
  view.tensor = view.tensor[key]
  view.first = view.first + (first - 1) * view.strides[d]
  view.shape[d], view.strides[d] = size, view.strides[d] * step
end

-- The value at a place (from 0, row by row) of a shape to which the view broadcasts.
local function reader(view, shape)
  local skipped = #shape - #view.shape
  local strides = {}
  for d = 1, #shape do
    local own = d > skipped and view.shape[d - skipped] ~= 1
    strides[d] = own and view.strides[d - skipped] or 0
  end
  return function(place)
    local at = view.first
    for d = #shape, 1, -1 do
      at = at + place % shape[d] * strides[d]
      place = place // shape[d]
    end
    return view.values[at]
  end
end

-- A view of a shape that lies in memory in some other order, with gaps perhaps.
local function view_of(shape, dtype)
  local order, outer = {}, {}
  for d = 1, #shape do order[d] = d end
  for d = #shape, 2, -1 do
    local other = math.random(d)
    order[d], order[other] = order[other], order[d]
  end
  local steps, firsts = {}, {}
  for i, d in ipairs(order) do
    local stepped = math.random(5) == 1
    steps[i], firsts[i] = stepped and 2 or 1, stepped and 2 or math.random(4) == 1 and 3 or 1
    outer[i] = firsts[i] + (shape[d] - 1) * steps[i]
  end
  local view = base(outer, dtype)
  for i = 1, #order do
    if steps[i] > 1 or firsts[i] > 1 then range(view, i, firsts[i], steps[i]) end
  end
  for d = 1, #shape do -- back into order
    for i = d, #shape do
      if order[i] == d then
        if i ~= d then swap(view, i, d) end
        order[i], order[d] = order[d], order[i]
        break
      end
    end
  end
  return view
end

-- A shape of odd sizes, of about so many elements.
local function draw_shape(count)
  local ndim, shape = math.random(1, 5), {}
  for d = 1, ndim do
    local short = math.random(3) == 1
    shape[d] = short and math.random(1, 5)
      or math.max(1, math.floor(count ^ (1 / ndim) * (0.5 + math.random())))
  end
  return shape
end

-- Some dimensions of size 1, or left away.
local function draw_partner(shape)
  local partner = {}
  for d = math.random(4) == 1 and math.random(#shape) or 1, #shape do
    partner[#partner + 1] = math.random(4) == 1 and 1 or shape[d]
  end
  return partner
end

local function assert_bits(t, shape, expected, what)
  lu.assertEquals(t.shape, shape, what)
  local got = support.flat(t)
  lu.assertEquals(#got, support.numel(shape), what)
  for i = 1, #got do
    local value = expected(i - 1)
    if got[i] ~= value then
      error(("%s: element %d of %s is %a, not %a"):format(what, i, support.shape_text(shape),
        got[i], value))
    end
  end
end

local function describe(number, ...)
  local text = {("case %d:"):format(number)}
  for _, view in ipairs {...} do
    text[#text + 1] = ("%s by %s of %s"):format(support.shape_text(view.shape),
      support.shape_text(view.strides), view.tensor.dtype)
  end
  return table.concat(text, " ")
end

local function wider(a, b) return (a == "float64" or b == "float64") and "float64" or "float32" end

-- ---- the suites ----

TestLayouts = {}

local ROUNDS = support.slow and 6 or 30

function TestLayouts:test_sums()
  for number = 1, ROUNDS do
    local shape = draw_shape(SMALL)
    local x = view_of(shape, DTYPES[math.random(2)])
    local y = view_of(draw_partner(shape), DTYPES[math.random(2)])
    local read_x, read_y = reader(x, shape), reader(y, shape)
    local dtype = wider(x.tensor.dtype, y.tensor.dtype)
    assert_bits(x.tensor + y.tensor, shape, function(place)
      return round(dtype, read_x(place) + read_y(place))
    end, describe(number, x, y))
  end
end

function TestLayouts:test_copies_and_casts()
  for number = 1, ROUNDS do
    local shape = draw_shape(SMALL)
    local x, dtype = view_of(shape, DTYPES[math.random(2)]), DTYPES[math.random(2)]
    local read = reader(x, shape)
    assert_bits(x.tensor:clone(), shape, read, describe(number, x))
    assert_bits(x.tensor:to(dtype), shape, function(place) return round(dtype, read(place)) end,
                describe(number, x) .. " to " .. dtype)
  end
end

-- What is written is a view of some layout; nothing around it changes.
function TestLayouts:test_in_place()
  for number = 1, ROUNDS do
    local shape = draw_shape(SMALL)
    local out = view_of(shape, DTYPES[math.random(2)])
    local y = view_of(draw_partner(shape), DTYPES[math.random(2)])
    local read_out, read_y = reader(out, shape), reader(y, shape)
    local wide, dtype = wider(out.tensor.dtype, y.tensor.dtype), out.tensor.dtype
    out.tensor:mul_(y.tensor)
    local what = describe(number, out, y)
    local function product(place)
      return round(dtype, round(wide, read_out(place) * read_y(place)))
    end
    assert_bits(out.tensor, shape, product, what)
    y.tensor:copy_(y.tensor * 1) -- the same values, written in y's own layout
    assert_bits(y.tensor, y.shape, reader(y, y.shape), what)
  end
end

function TestLayouts:test_around_what_is_written()
  for _, size in ipairs {{97, 101}, {3, 1500}, {1500, 3}, {64, 64}} do
    local rows, columns = size[1], size[2]
    local whole = tensor.zeros(rows + 2, columns * 2 + 1)
    local part = whole[{{2, rows + 1}, {2, columns * 2, 2}}]
    local y = view_of({columns, rows}, "float32")
    local read = reader(y, {columns, rows})
    part:t():copy_(y.tensor)
    assert_bits(whole, {rows + 2, columns * 2 + 1}, function(place)
      local i, j = place // (columns * 2 + 1), place % (columns * 2 + 1)
      local inside = i >= 1 and i <= rows and j % 2 == 1
      return inside and read(j // 2 * rows + i - 1) or 0
    end, ("%dx%d"):format(rows, columns))
  end
end

-- An operand that is the tensor written, or a part of it, seen in another order.
function TestLayouts:test_aliases()
  for _, n in ipairs {5, 33, 64, 109} do
    local x = base({n, n}, "float32")
    local read = reader(x, {n, n})
    local function turned(place) return read(place % n * n + place // n) end
    local sum = function(place) return round("float32", read(place) + turned(place)) end
    local original = x.tensor:clone()
    x.tensor:add_(x.tensor:t())
    assert_bits(x.tensor, {n, n}, sum, "x += x'")
    x.tensor:copy_(original):t():add_(x.tensor)
    assert_bits(x.tensor, {n, n}, sum, "x' += x")
    x.tensor:copy_(original):t():copy_(original)
    assert_bits(x.tensor, {n, n}, turned, "x' = x")
    x.tensor:copy_(original)
    assert_bits(x.tensor:t() + x.tensor:t() + x.tensor, {n, n}, function(place)
      return round("float32", round("float32", 2 * turned(place)) + read(place))
    end, "x' + x' + x")
  end
end

-- Several operands, each in an order of its own, in one program.
function TestLayouts:test_joined_programs()
  for number = 1, ROUNDS // 3 do
    local shape = draw_shape(2 * SMALL)
    local views, reads = {}, {}
    for i = 1, 5 do
      views[i] = view_of(i == 1 and shape or draw_partner(shape), "float32")
      reads[i] = reader(views[i], shape)
    end
    local a, b, c, d, e = table.unpack(views)
    local result = (a.tensor + b.tensor) * c.tensor - d.tensor
    local kept = result * e.tensor
    local function expected(place)
      local sum = round("float32", reads[1](place) + reads[2](place))
      local product = round("float32", sum * reads[3](place))
      return round("float32", product - reads[4](place))
    end
    local what = describe(number, a, b, c, d, e)
    assert_bits(kept, shape, function(place)
      return round("float32", expected(place) * reads[5](place))
    end, what)
    assert_bits(result, shape, expected, what)
  end
end

-- Their elements are reduced in row-major order, whatever the layout.
function TestLayouts:test_reductions_of_layouts()
  for number = 1, ROUNDS // 3 do
    local shape = draw_shape(2 * SMALL)
    local x, y = view_of(shape, "float32"), view_of(shape, "float32")
    local flat, product = {}, {}
    local read_x, read_y = reader(x, shape), reader(y, shape)
    for place = 0, support.numel(shape) - 1 do
      flat[place + 1] = read_x(place)
      product[place + 1] = round("float32", read_x(place) * read_y(place))
    end
    local what = describe(number, x, y)
    for _, name in ipairs {"sum", "max"} do
      lu.assertEquals(x.tensor[name](x.tensor):item(),
                      tensor[name](support.tensor({#flat}, flat)):item(), what)
      lu.assertEquals(tensor[name](x.tensor * y.tensor):item(),
                      tensor[name](support.tensor({#product}, product)):item(), what)
    end
  end
end

-- Sizes that need several tiles, in two dimensions and three, of one order and of two.
function TestLayouts:test_tiles()
  local shapes = support.slow and {{67, 3, 331}} or {{261, 300}, {67, 3, 431}, {41, 43, 41}}
  for _, shape in ipairs(shapes) do
    local x, y = view_of(shape, "float32"), base(shape, "float32")
    local z, last = {table.unpack(shape)}, #shape
    z[1], z[last] = z[last], z[1]
    z = base(z, "float32")
    swap(z, 1, last)
    local read_x, read_y, read_z = reader(x, shape), reader(y, shape), reader(z, shape)
    assert_bits(x.tensor * y.tensor - z.tensor, shape, function(place)
      return round("float32", round("float32", read_x(place) * read_y(place)) - read_z(place))
    end, describe(#shape, x, y, z))
  end
end

-- Past the sizes at which results are stored past the caches.
function TestLayouts:test_large()
  local rows, columns = 2051, 2049
  local x, y = tensor.rand(columns, rows), tensor.rand(rows, columns)
  local sum, product = x:t() + y, y:t() * x
  for _, at in ipairs {{1, 1}, {rows, columns}, {256, 257}, {257, 256}, {1025, 33}, {2000, 17}} do
    local i, j = at[1], at[2]
    local a, b = x[j][i]:item(), y[i][j]:item()
    lu.assertEquals(sum[i][j]:item(), round("float32", a + b))
    lu.assertEquals(product[j][i]:item(), round("float32", a * b))
  end
  lu.assertTrue(sum - y:t():clone():t() == x:t():clone() + y - y)
  lu.assertTrue(product:t() == y * x:t())
  for _, i in ipairs {1, 255, 256, 257, 1024, rows} do -- row by row, without tiles
    lu.assertTrue(sum[i] == x[{{}, i}]:clone() + y[i])
  end
end

function TestLayouts:test_threads_do_not_matter()
  local x, y = tensor.rand(301, 7, 203), tensor.rand(203, 301, 7)
  local first
  support.each_thread_count(function()
    local result = x * y:transpose(1, 2):transpose(2, 3) + x:transpose(1, 3):transpose(1, 3)
    first = first or result
    lu.assertTrue(result == first)
  end)
end

TestNumPy = {}

-- NumPy's strides over the same memory.
function TestNumPy:test_strides()
  for number = 1, support.slow and 1 or 4 do
    local shape = draw_shape(SMALL)
    local x, y = view_of(shape, "float32"), view_of(shape, "float32")
    local data = table.move(y.values, 1, #y.values, #x.values + 1, {table.unpack(x.values)})
    local function strided(view, first)
      return ("np.lib.stride_tricks.as_strided(all[%d:], (%s,), [4 * s for s in (%s,)])"):format(
        first, table.concat(view.shape, ", "), table.concat(view.strides, ", "))
    end
    local expected = support.numpy(("all = np.array(data, np.float32)\nx, y = %s, %s\n" ..
      "result = (x * y + x).ravel()"):format(strided(x, x.first - 1),
      strided(y, #x.values + y.first - 1)), data)
    lu.skipIf(not expected, "needs NumPy")
    support.assert_values(x.tensor * y.tensor + x.tensor, shape, expected, describe(number, x, y))
  end
end

-- The whole suite again with the other instruction sets, in programs of their own.
TestInstructionSets = {}

for _, isa in ipairs {"baseline", "avx2"} do
  TestInstructionSets["test_" .. isa] = function()
    lu.skipIf(os.getenv "TENSORLUA_ISA" or support.slow, "the suite runs with one of them")
    local status, out, err = support.shell(("TENSORLUA_ISA=%s %s -e '' 2>/dev/null"):format(isa,
      support.quote(support.program)))
    lu.skipIf(status ~= 0, "this machine does not run " .. isa)
    status, out, err = support.shell(("TENSORLUA_ISA=%s %s %s"):format(isa,
      support.quote(support.program), support.quote(arg[0])))
    lu.assertEquals(status, 0, out .. err)
  end
end

os.exit(lu.LuaUnit.run())
