-- Views: their sizes and values against NumPy's over random shapes and layouts; that they share
-- memory, by writing through them; what cannot be written; and what is refused.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local oracle = require "oracle"
local equals, raises = lu.assertEquals, support.assert_raises
local tuple = oracle.tuple

local ROUNDS = support.slow and 8 or 40

-- One of the indices that mean dimension d (from 1) of n, for Lua, and NumPy's.
local function any_dim(n)
  local d = math.random(n)
  return math.random(2) == 1 and d or d - n - 1, d - 1
end

local function shuffled(n)
  local list = {}
  for i = 1, n do table.insert(list, math.random(i), i) end
  return list
end

local function zero_based(list)
  local result = {}
  for i, d in ipairs(list) do result[i] = d - 1 end
  return result
end

-- Each makes a call for a random shape: the method's arguments, and the expression for NumPy, whose
-- value is a view too.
local MAKERS = {
  permute = function(shape)
    local order = shuffled(#shape)
    local code = ("np.transpose(x, %s)"):format(tuple(zero_based(order)))
    if math.random(2) == 1 then return {order}, code end
    return order, code
  end,
  transpose = function(shape)
    local a, b = math.random(#shape), math.random(#shape)
    return {a, b - #shape - 1}, ("np.swapaxes(x, %d, %d)"):format(a - 1, b - 1)
  end,
  swapaxes = function(shape)
    local a, b = math.random(#shape), math.random(#shape)
    return {a, b}, ("np.swapaxes(x, %d, %d)"):format(a - 1, b - 1)
  end,
  movedim = function(shape)
    local count = math.random(#shape)
    local from, to = shuffled(#shape), shuffled(#shape)
    from, to = {table.unpack(from, 1, count)}, {table.unpack(to, 1, count)}
    local code = ("np.moveaxis(x, %s, %s)"):format(tuple(zero_based(from)), tuple(zero_based(to)))
    if count == 1 then return {from[1], to[1]}, code end
    return {from, to}, code
  end,
  unsqueeze = function(shape)
    local at = math.random(#shape + 1)
    return {math.random(2) == 1 and at or at - #shape - 2},
           ("x[(slice(None),) * %d + (None, Ellipsis)]"):format(at - 1)
  end,
  squeeze = function(shape)
    local kept, dims = {}, {}
    local all = math.random(3) == 1
    for d = 1, #shape do
      local chosen = all or math.random(2) == 1
      if chosen and not all then dims[#dims + 1] = d end
      kept[d] = chosen and shape[d] == 1 and "0" or "slice(None)"
    end
    kept[#kept + 1] = "Ellipsis"
    return all and {} or {dims}, ("x[%s]"):format(tuple(kept))
  end,
  narrow = function(shape)
    local dim, d = any_dim(#shape)
    local size = shape[d + 1]
    local first = math.random(0, size)
    local count = math.random(0, size - first)
    local given = first < size and math.random(2) == 1 and first - size or first + 1
    return {dim, given, count},
           ("x[(slice(None),) * %d + (slice(%d, %d),)]"):format(d, first, first + count)
  end,
  select = function(shape)
    local dim, d = any_dim(#shape)
    local size = shape[d + 1]
    if size == 0 then return nil end
    local i = math.random(size)
    return {dim, math.random(2) == 1 and i or i - size - 1},
           ("x[(slice(None),) * %d + (%d, Ellipsis)]"):format(d, i - 1)
  end,
  diagonal = function(shape)
    if #shape < 2 then return nil end
    local offset, order = math.random(-4, 4), shuffled(#shape)
    if math.random(3) == 1 then return {}, "np.diagonal(x)" end
    return {offset, order[1], order[2]},
           ("np.diagonal(x, %d, %d, %d)"):format(offset, order[1] - 1, order[2] - 1)
  end,
  unfold = function(shape)
    local dim, d = any_dim(#shape)
    if shape[d + 1] == 0 then return nil end
    local size = math.random(shape[d + 1])
    local step = math.random(size, size + 1) -- apart, so that they can be written
    return {dim, size, step},
           ("windows(x, %d, %d, writeable=True)[(slice(None),) * %d + (slice(None, None, %d),)]")
           :format(size, d, d, step)
  end,
  unflatten = function(shape)
    local dim, d = any_dim(#shape)
    local size = shape[d + 1]
    if size == 0 or #shape > 4 then return nil end
    local part = math.random(size)
    while size % part ~= 0 do part = part - 1 end
    local sizes = {part, size // part, 1}
    local code = tuple{table.concat(shape, ",", 1, d), table.concat(sizes, ","),
                       table.concat(shape, ",", d + 2)}
    code = code:gsub("%(,+", "("):gsub(",+%)", ",)"):gsub(",,+", ",")
    sizes[math.random(3)] = -1
    return {dim, sizes}, "reshaped(x, " .. code .. ")"
  end,
}

local names = {}
for name in pairs(MAKERS) do names[#names + 1] = name end
table.sort(names)

TestViews = {}

function TestViews:test_values()
  local cases = oracle.new()
  cases.code[1] = "def reshaped(x, shape): return x.reshape(shape)"
  for _, name in ipairs(names) do
    for _ = 1, ROUNDS do
      local shape = oracle.shape(1, 5)
      local arguments, expression = MAKERS[name](shape)
      if arguments then
        local x, input = oracle.operand(shape)
        local what = ("%s of %s: %s"):format(name, support.shape_text(shape), expression)
        cases:add(what, {input}, expression, x[name](x, table.unpack(arguments)))
      end
    end
  end
  lu.assertTrue(cases:check() > 8 * ROUNDS)
end

-- What is written through a view is in the tensor, also when that is strided itself.
function TestViews:test_they_share_memory()
  local cases = oracle.new()
  cases.code[1] = "def reshaped(x, shape):\n  y = x.view()\n  y.shape = shape\n  return y"
  for _, name in ipairs(names) do
    for _ = 1, ROUNDS do
      local shape = oracle.shape(1, 5)
      local arguments, expression = MAKERS[name](shape)
      if arguments then
        local data = support.random_integers(support.numel(shape), -99, 99)
        local x = support.any_layout(shape, data)
        x[name](x, table.unpack(arguments)):fill_(-7)
        local what = ("%s of %s: %s"):format(name, support.shape_text(shape), expression)
        cases:add_write(what, {shape, data}, expression, x)
      end
    end
  end
  cases:check()
end

function TestViews:test_zero_dimensional()
  local x = tensor(3)
  for _, y in ipairs {x:permute(), x:permute{}, x:squeeze(), x:movedim({}, {}), x:expand{},
                      x:view{}, x:contiguous(), x:flip(), x:expand_as(x), x:view_as(x)} do
    equals(y.shape, {})
    equals(y:item(), 3)
  end
  equals(x:unsqueeze(1).shape, {1})
  equals(x:unsqueeze(-1).shape, {1})
  equals(x:expand(2, 3):totable(), {{3, 3, 3}, {3, 3, 3}})
  equals(x:view(1, 1).shape, {1, 1})
end

function TestViews:test_strides()
  local x = tensor.zeros(2, 3, 4)
  equals(x:unsqueeze(1):stride(), {24, 12, 4, 1})
  equals(x:unsqueeze(2):stride(), {12, 12, 4, 1})
  equals(x:unsqueeze(-1):stride(), {12, 4, 1, 1})
  equals(x:unsqueeze(2):is_contiguous(), true)
  equals(x:permute(3, 1, 2):stride(), {1, 12, 4})
  equals(x:expand(5, 2, 3, 4):stride(), {0, 12, 4, 1})
  equals(x:diagonal(1, 1, 3):stride(), {4, 13})
  equals(x:unfold(3, 2, 2):stride(), {12, 4, 2, 1})
end

TestView = {}

-- Whatever reshape does without a copy, view does, and nothing else.
function TestView:test_it_is_reshape_without_copies()
  local shapes = {{24}, {2, 12}, {4, 6}, {2, 3, 4}, {3, 1, 8}, {1, 24, 1}, {2, 2, 2, 3}}
  local views, refused = 0, 0
  for _, from in ipairs(shapes) do
    local data = support.random_integers(24, 1, 99)
    for _, layout in ipairs(support.layouts(from, data)) do
      for _, to in ipairs(shapes) do
        local x = layout[2]:clone() -- to be written to
        if layout[1] == "transposed" then x = x:transpose(1, -1):clone():transpose(1, -1) end
        local shared = x:reshape(to)
        shared:fill_(0)
        local is_view = x:sum():item() == 0
        local ok, y = pcall(x.view, x, to)
        equals(ok, is_view, support.shape_text(from) .. " as " .. support.shape_text(to))
        if ok then
          views = views + 1
          y:fill_(1)
          equals(x:sum():item(), 24)
          equals(y.shape, to)
        else
          refused = refused + 1
          lu.assertStrContains(y, "view: ")
        end
      end
    end
  end
  lu.assertTrue(views > 50 and refused > 10)
end

function TestView:test_of_others()
  local x, y = tensor.arange(6), tensor.zeros(2, 3)
  x:view_as(y):add_(1)
  equals(x:totable(), {2, 3, 4, 5, 6, 7})
  equals(y:t():reshape_as(x).shape, {6})
  equals(x:reshape_as(y).shape, {2, 3})
  raises("view_as: 3x2 with strides 1x3 cannot be seen as 6 without moving elements: use reshape",
         x.view_as, y:t(), x)
  raises("view_as: 6 has 6 elements, which do not make 2", x.view_as, x, tensor{1, 2})
  raises("reshape_as: 6 has 6 elements, which do not make ()", x.reshape_as, x, tensor(1))
  raises("reshape_as: argument 2 must be a tensor, not number", x.reshape_as, x, 6)
  raises("view_as: 3 arguments are too many: at most 2", x.view_as, x, y, 1)
end

function TestView:test_errors()
  local x = tensor.zeros(2, 3)
  raises("view: 3x2 with strides 1x3 cannot be seen as 6 without moving elements: use reshape",
         x.view, x:t(), -1)
  raises("view: 2x3 has 6 elements, which do not make 4", x.view, x, 4)
  raises("view: only one size can be -1", x.view, x, -1, -1)
  raises("view: size nan is not an integer", x.view, x, math.abs(0 / 0))
  raises("view: a size is missing: numbers or a table", x.view, x)
  raises("unflatten: dimension 2 of 2x3 has 3 elements, which do not make 2x-1", x.unflatten, x, 2,
         2, -1)
  raises("unflatten: dimension 3 is out of range for a tensor of size 2x3", x.unflatten, x, 3, 1)
  raises("unflatten: 9 dimensions are too many: at most 8", x.unflatten, x, 1,
         {2, 1, 1, 1, 1, 1, 1, 1})
  raises("unflatten: a size is missing: numbers or a table", x.unflatten, x, 1)
end

TestContiguous = {}

function TestContiguous:test_itself_or_a_copy()
  local x = tensor.arange(6):reshape(2, 3)
  lu.assertTrue(rawequal(x:contiguous(), x))
  local y = x:t():contiguous()
  equals(y:stride(), {2, 1})
  equals(y:totable(), {{1, 4}, {2, 5}, {3, 6}})
  y:zero_()
  equals(x:sum():item(), 21)
  raises("contiguous: 2 arguments are too many: at most 1", x.contiguous, x, 1)
end

TestExpand = {}

function TestExpand:test_values()
  local cases = oracle.new()
  for _ = 1, ROUNDS * 2 do
    local to = oracle.shape(0, 5)
    local from, given = {}, {table.unpack(to)}
    local skipped = math.random(0, #to)
    for d = skipped + 1, #to do
      from[#from + 1] = math.random(2) == 1 and 1 or to[d]
      if from[#from] == to[d] and math.random(2) == 1 then given[d] = -1 end
    end
    local x, input = oracle.operand(from)
    local code = ("np.broadcast_to(x, %s)"):format(tuple(to))
    cases:add("expand: " .. code, {input}, code, x:expand(given))
    cases:add("broadcast_to: " .. code, {input}, code, x:broadcast_to(given))
    cases:add("expand_as: " .. code, {input}, code, x:expand_as(tensor.zeros(to)))
    -- as an operand of what reads it
    cases:add("+ 1: " .. code, {input}, code .. " + 1", x:expand(given) + 1)
    cases:add("sum: " .. code, {input}, code .. ".sum()", x:expand(given):sum())
  end
  cases:check()
end

function TestExpand:test_writes_to_the_tensor_show()
  local x = tensor{1, 2}
  local y = x:expand(3, 2)
  x:mul_(10)
  equals(y:totable(), {{10, 20}, {10, 20}, {10, 20}})
  equals(y:mm(y:t()):totable(), {{500, 500, 500}, {500, 500, 500}, {500, 500, 500}})
end

-- Which of the values written to one place would stay, nobody could tell.
function TestExpand:test_it_cannot_be_written()
  local x = tensor{1, 2}
  local text = ": several elements of the tensor written are one in memory: clone it first"
  for _, y in ipairs {x:expand(3, 2), tensor(1):expand(2), x:unfold(1, 1, 1):expand(2, 2),
                      tensor.arange(4):unfold(1, 2, 1)} do
    local before = y:clone()
    raises("fill_" .. text, y.fill_, y, 3)
    raises("zero_" .. text, y.zero_, y)
    raises("copy_" .. text, y.copy_, y, before)
    raises("add_" .. text, y.add_, y, 1)
    raises("exp_" .. text, y.exp_, y)
    raises("copy_" .. text, function() y[{}] = before end)
    lu.assertTrue(before == y:clone())
  end
  x:expand(1, 2):fill_(5)
  x:expand(0, 2):fill_(6)
  x:unfold(1, 2, 2):add_(1)
  equals(x:totable(), {6, 6})
end

function TestExpand:test_errors()
  local x = tensor.zeros(2, 1)
  for _, name in ipairs {"expand", "broadcast_to"} do
    local f = x[name]
    raises(name .. ": cannot expand 2x1 to 3x4", f, x, 3, 4)
    raises(name .. ": cannot expand 2x1 to 2", f, x, 2)
    raises(name .. ": cannot expand 2x1 to -1", f, x, -1)
    raises(name .. ": cannot expand 2x1 to ()", f, x, {})
    raises(name .. ": size -1 keeps one, and dimension 1 of -1x2x4 is new to 2x1", f, x, -1, 2, 4)
    raises(name .. ": size -2 is negative", f, x, 2, -2)
    raises(name .. ": a size is missing: numbers or a table", f, x)
    raises(name .. ": a tensor of 1099511627776x2x1099511627776 elements is too large", f, x,
           1 << 40, 2, 1 << 40)
    raises(name .. ": 9 dimensions are too many: at most 8", f, x, 1, 1, 1, 1, 1, 1, 1, 2, 1)
  end
  raises("expand_as: cannot expand 2x1 to 3x1", x.expand_as, x, tensor.zeros(3, 1))
  raises("expand_as: argument 2 must be a tensor, not missing", x.expand_as, x)
end

-- A huge view is no more than its numbers; a copy of it is refused.
function TestExpand:test_huge()
  local x = tensor(1):expand(1 << 40, 2)
  equals(x:numel(), 1 << 41)
  equals(x[{1 << 39, 2}]:item(), 1)
  for _, f in ipairs {x.clone, x.exp, function() return x:to "float64" end} do
    local ok, message = pcall(f, x)
    equals(ok, false)
    lu.assertStrContains(message, "out of memory")
  end
  raises("expand: a tensor of 2305843009213693952 elements is too large", tensor(1).expand,
         tensor(1), 1 << 61)
end

TestErrors = {}

function TestErrors:test_dimensions()
  local x = tensor.zeros(2, 3)
  for name, arguments in pairs {permute = {1, 3}, squeeze = {3}, flip = {{1, 3}}, movedim = {3, 1},
                                narrow = {3, 1, 1}, select = {3, 1}, unfold = {3, 1, 1},
                                diagonal = {0, 3}, swapaxes = {1, 3}} do
    raises(name .. ": dimension 3 is out of range for a tensor of size 2x3", x[name], x,
           table.unpack(arguments))
  end
  for _, name in ipairs {"permute", "squeeze", "flip"} do
    raises(name .. ": dimension 2 is given twice", x[name], x, 2, -1)
    raises(name .. ": dimension 0 is out of range for a tensor of size 2x3", x[name], x, 0)
    raises(name .. ": dimension -3 is out of range for a tensor of size 2x3", x[name], x, -3)
    raises(name .. ": dimension 1.5 is not an integer", x[name], x, 1.5)
    raises(name .. ": dimension nan is not an integer", x[name], x, {1, math.abs(0 / 0)})
    raises(name .. ": dimension a is not an integer", x[name], x, "a")
    raises(name .. ": dimension table is not an integer", x[name], x, 1, {})
    raises(name .. ": dimension 1 is out of range for a tensor of size ()", x[name], tensor(1), 1)
    raises(name .. ": too many arguments after the dimensions", x[name], x, {1}, 2)
  end
  raises("permute: 1 dimensions do not order the 2 of a tensor of size 2x3", x.permute, x, 1)
  raises("permute: 0 dimensions do not order the 2 of a tensor of size 2x3", x.permute, x)
  raises("movedim: 2 dimensions cannot move to 1 places", x.movedim, x, {1, 2}, {1})
  raises("movedim: dimension nil is not an integer", x.movedim, x, nil, 1)
  raises("diagonal: dimension 1 is given twice", x.diagonal, x, 0, 1, -2)
  raises("diagonal: wants at least 2 dimensions, not 1", x.diagonal, tensor{1})
  raises("diagonal: argument 2 must be an integer, not string", x.diagonal, x, "1")
end

function TestErrors:test_unsqueeze()
  local x = tensor.zeros(2, 3)
  for _, at in ipairs {0, 4, -4, math.mininteger, math.maxinteger} do
    raises(("unsqueeze: a tensor of size 2x3 gets no dimension %d: 1 to 3, or -3 to -1"):format(at),
           x.unsqueeze, x, at)
  end
  raises("unsqueeze: argument 2 must be an integer, not missing", x.unsqueeze, x)
  raises("unsqueeze: 9 dimensions are too many: at most 8", x.unsqueeze,
         tensor.zeros(1, 1, 1, 1, 1, 1, 1, 1), 1)
end

function TestErrors:test_parts()
  local x = tensor.zeros(2, 3)
  for _, range in ipairs {{0, 1}, {5, 0}, {1, 4}, {4, 1}, {2, -1}, {-4, 1}, {-1, 2},
                          {1, math.maxinteger}, {math.mininteger, 1}} do
    raises(("narrow: %d elements from %d are out of range for dimension 2 of a tensor of size 2x3")
           :format(range[2], range[1]), x.narrow, x, 2, range[1], range[2])
  end
  raises("narrow: argument 4 must be an integer, not missing", x.narrow, x, 1, 1)
  for _, i in ipairs {3, 0, -3} do
    raises(("select: index %d is out of range for dimension 1 of a tensor of size 2x3"):format(i),
           x.select, x, 1, i)
  end
  raises("select: argument 3 must be an integer, not string", x.select, x, 1, "1")
  raises("select: argument 3 must be an integer, not table", x.select, x, 1, {})
  raises("unfold: a window of 4 elements does not fit into dimension 2 of a tensor of size 2x3",
         x.unfold, x, 2, 4, 1)
  raises("unfold: windows of 0 elements, 1 apart, are none: both must be at least 1", x.unfold, x,
         2, 0, 1)
  raises("unfold: windows of 1 elements, -1 apart, are none: both must be at least 1", x.unfold, x,
         2, 1, -1)
  raises("unfold: 9 dimensions are too many: at most 8", x.unfold,
         tensor.zeros(1, 1, 1, 1, 1, 1, 1, 1), 1, 1, 1)
  equals(x:unfold(2, 3, math.maxinteger).shape, {2, 1, 3})
  equals(x:diagonal(math.mininteger).shape, {0})
  equals(x:diagonal(math.maxinteger).shape, {0})
end

function TestErrors:test_sizes_in_bytes()
  local x = tensor.zeros(2, 3, {dtype = "float64"})
  equals({x:element_size(), x:nbytes()}, {8, 48})
  equals({tensor(1):element_size(), tensor(1):expand(5):nbytes()}, {4, 20})
  equals(tensor.zeros(0, 3):nbytes(), 0)
end

TestCompile = {}

-- A compiled function goes on with other arguments of the same strides, and a view that it returns
-- shares memory with what it was given.
function TestCompile:test_views()
  local f = tensor.compile(function(x)
    local windows = x:permute(2, 1):unfold(1, 2, 1)
    return (windows * 2):sum(3), x:diagonal(1), x:flip(1), x:unsqueeze(1):expand(2, -1, -1) + 1
  end)
  for i = 1, 3 do
    local x = tensor.arange(12):reshape(3, 4) * i
    local sums, diagonal, flipped, twice = f(x)
    equals(sums:totable()[1], {6 * i, 22 * i, 38 * i})
    equals(diagonal:totable(), {2 * i, 7 * i, 12 * i})
    equals(flipped:totable()[1], {9 * i, 10 * i, 11 * i, 12 * i})
    equals(twice.shape, {2, 3, 4})
    lu.assertTrue(twice[2] == x + 1)
    diagonal:zero_()
    equals(x[{1, 2}]:item(), 0)
  end
end

os.exit(lu.LuaUnit.run())
