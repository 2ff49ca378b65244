-- lua/tensor/format.lua against PyTorch's own texts: with tensors, and with stand-ins for them that
-- count what is read, and may be on devices that are not here. Print options, too.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "../../lua/?.lua;" .. package.path

local luaunit = require "luaunit"
local printing = require "tensor.format"
local golden = dofile(here .. "golden_printing.lua")

local format, options = printing.format, printing.options

local library = tensor -- the name is a stand-in's below

-- A stand-in tensor: a view (offset, shape, strides) of the function `at`, which gives the element
-- at a place in row-major order, from 0. `reads` counts the elements that totable() gave out.
local Stub = {}
local reads = 0

local function view(at, dtype, device, shape, strides, offset)
  return setmetatable({at = at, dtype = dtype, device = device, shape = shape, strides = strides,
    offset = offset}, Stub)
end

function Stub:numel()
  local count = 1
  for _, size in ipairs(self.shape) do count = count * size end
  return count
end

function Stub:totable()
  local function build(dim, place)
    if dim > #self.shape then
      reads = reads + 1
      return self.at(place)
    end
    local list = {}
    for i = 1, self.shape[dim] do list[i] = build(dim + 1, place + (i - 1) * self.strides[dim]) end
    return list
  end
  return build(1, self.offset)
end

-- Inclusive ranges from 1, negative ones from the end, {} for all.
function Stub:__index(key)
  if type(key) ~= "table" then return Stub[key] end
  assert(#key <= #self.shape, "too many ranges")
  local shape, offset = {table.unpack(self.shape)}, self.offset
  for dim, range in ipairs(key) do
    local size = shape[dim]
    local first, last = range[1] or 1, range[2] or size
    if first < 0 then first = first + size + 1 end
    if last < 0 then last = last + size + 1 end
    assert(first >= 1 and first <= last and last <= size, "range outside the dimension")
    shape[dim], offset = last - first + 1, offset + (first - 1) * self.strides[dim]
  end
  return view(self.at, self.dtype, self.device, shape, self.strides, offset)
end

local function round_to(dtype, x)
  if dtype == "float32" then return (string.unpack("f", string.pack("f", x))) end
  if dtype:find("int") then return math.tointeger(x) end
  return x
end

local function tensor_of(shape, dtype, at, device)
  local strides, stride = {}, 1
  for dim = #shape, 1, -1 do strides[dim], stride = stride, stride * shape[dim] end
  local function rounded(place) return round_to(dtype, at(place)) end
  return view(rounded, dtype, device or "cpu", shape, strides, 0)
end

local function tensor(shape, data, dtype, device)
  return tensor_of(shape, dtype or "float32", function(place) return data[place + 1] end, device)
end

local function vector(data, dtype) return tensor({#data}, data, dtype) end

local function arange(shape, dtype)
  return tensor_of(shape, dtype or "float32", function(place) return place end)
end

-- format(t) under other print options, which are put back whatever happens.
local function format_with(changes, t)
  local saved = {}
  for name, value in pairs(changes) do saved[name], options[name] = options[name], value end
  local ok, text = pcall(format, t)
  for name in pairs(changes) do options[name] = saved[name] end
  if not ok then error(text, 0) end
  return text
end

local eq = luaunit.assertEquals

TestGolden = {}

function TestGolden:test_every_text_of_pytorch()
  local ran, dtypes, dtype_count = 0, {}, 0
  for i, case in ipairs(golden) do
    local t
    if case.data then
      t = tensor(case.shape, case.data, case.dtype)
      eq(#case.data, t:numel(), "golden case " .. i)
    else
      local function at(place) return case.start + place * case.step end
      t = tensor_of(case.shape, case.dtype, at)
    end
    eq(format(t), case.text, "golden case " .. i)
    ran = ran + 1
    if not dtypes[case.dtype] then
      dtypes[case.dtype], dtype_count = true, dtype_count + 1
    end
  end
  eq(ran, 233)
  eq(dtype_count, 10)
end

-- The same as tensors, whose text print() shows: laid out in order, and with the dimensions the
-- other way round in memory.
function TestGolden:test_every_text_of_pytorch_with_tensors()
  local ran = 0
  for i, case in ipairs(golden) do
    local data, count = case.data, 1
    for _, size in ipairs(case.shape) do count = count * size end
    if not data then
      data = {}
      for place = 0, count - 1 do data[place + 1] = case.start + place * case.step end
    end
    local t = count == 0 and library.zeros(case.shape, {dtype = case.dtype})
              or library(data, {dtype = case.dtype}):reshape(case.shape)
    eq(t.dtype, case.dtype)
    eq(tostring(t), case.text, "golden case " .. i)
    if #case.shape > 1 then
      local turned = t:transpose(1, -1):contiguous():transpose(1, -1)
      eq(tostring(turned), case.text, "golden case " .. i .. ", transposed")
    end
    ran = ran + 1
  end
  eq(ran, 233)
end

TestSetPrintoptions = {}

function TestSetPrintoptions:tearDown() library.set_printoptions{profile = "default"} end

local set = library.set_printoptions

local function raises(expected, ...)
  local ok, message = pcall(set, ...)
  luaunit.assertFalse(ok)
  eq((message:gsub("^[^:]+:%d+: ", "")), "set_printoptions: " .. expected)
end

function TestSetPrintoptions:test_each_option()
  local x = library{1.23456, -7}
  set{precision = 2}
  eq(tostring(x), "tensor([ 1.23, -7.00])")
  set{sci_mode = true}
  eq(tostring(x), "tensor([1.23e+00, -7.00e+00])")
  set{precision = 4} -- and the choice of the form is PyTorch's again
  eq(tostring(x), "tensor([ 1.2346, -7.0000])")
  set{sci_mode = false}
  eq(tostring(library{1e-5, 1}), "tensor([    0.0000,     1.0000])")
  set{threshold = 5, edgeitems = 2.0}
  eq(tostring(library.arange(6)), "tensor([1., 2.,  ..., 5., 6.])")
  set{linewidth = 20, threshold = 1000}
  eq(tostring(library.arange(5)), "tensor([1., 2., 3.,\n        4., 5.])")
end

function TestSetPrintoptions:test_profiles()
  local third = library{1 / 3}
  set{profile = "short"}
  eq(tostring(third), "tensor([0.33])")
  eq(tostring(library.arange(1001)), "tensor([1.00e+00, 2.00e+00,  ..., 1.00e+03, 1.00e+03])")
  set{profile = "full", precision = 6} -- what is said beside it goes before it
  eq(tostring(third), "tensor([0.333333])")
  eq(tostring(library.arange(1001)):find("...", 1, true), nil)
  set{profile = "default"}
  eq(tostring(third), "tensor([0.3333])")
end

function TestSetPrintoptions:test_the_options_can_be_put_back()
  eq(library.get_printoptions(), {precision = 4, threshold = 1000, edgeitems = 3, linewidth = 80})
  set{precision = 1, sci_mode = true}
  local saved = library.get_printoptions()
  saved.linewidth = 1 -- a copy
  eq(library.get_printoptions(),
     {precision = 1, threshold = 1000, edgeitems = 3, linewidth = 80, sci_mode = true})
  set{profile = "default"}
  set(saved)
  eq(library.get_printoptions().linewidth, 1)
end

function TestSetPrintoptions:test_refused()
  local before = library.get_printoptions()
  raises("precision must be an integer from 0 to 99, not 100", {precision = 100})
  raises("precision must be an integer from 0 to 99, not -1", {precision = -1})
  raises("precision must be an integer from 0 to 99, not 1.5", {precision = 1.5})
  raises("precision must be an integer from 0 to 99, not 2", {precision = "2"})
  raises("threshold must be a number, 0 or more, not -1", {precision = 2, threshold = -1})
  raises("threshold must be a number, 0 or more, not " .. tostring(0 / 0), {threshold = 0 / 0})
  raises("edgeitems must be an integer, 0 or more, not table", {edgeitems = {}})
  raises("linewidth must be a number, 1 or more, not 0", {linewidth = 0})
  raises("sci_mode must be true or false, not 1", {sci_mode = 1})
  raises("profile must be 'default', 'short' or 'full', not long", {profile = "long"})
  raises("unknown option 'width': precision, threshold, edgeitems, linewidth, sci_mode or profile",
         {width = 3, precision = 2})
  raises("argument 1 must be a table of options, not nil")
  raises("2 arguments are too many: at most 1", {}, 2)
  eq(library.get_printoptions(), before)
end

TestSummary = {}

local function reads_of(shape, changes)
  reads = 0
  format_with(changes or {}, arange(shape, "int64"))
  return reads
end

function TestSummary:test_only_the_edges_are_read()
  eq(reads_of {1000}, 1000)
  eq(reads_of {1001}, 6)
  eq(reads_of {1000000000}, 6)
  eq(reads_of {100000, 100000}, 36)
  eq(reads_of {3, 500}, 3 * 6)
  eq(reads_of {500, 6}, 6 * 6)
  eq(reads_of {11, 11, 11}, 6 ^ 3)
  eq(reads_of {6, 6, 6, 6}, 6 ^ 4)
  eq(reads_of({100}, {threshold = 99, edgeitems = 1}), 2)
  eq(reads_of({100}, {threshold = 99, edgeitems = 0}), 0)
  eq(reads_of {0, 1000000}, 0)
end

function TestSummary:test_a_value_between_the_edges_has_no_say()
  local function at(place) return place == 500 and 1e30 or 0.5 end
  eq(format(tensor_of({1001}, "float32", at)),
    "tensor([0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000])")
end

function TestSummary:test_a_billion_elements_at_once()
  local before = os.clock()
  eq(format(arange({1000, 1000, 1000}, "int64")):match("[^\n]*"),
    "tensor([[[        0,         1,         2,  ...,       997,       998,")
  luaunit.assertTrue(os.clock() - before < 0.5)
end

TestOptions = {}

function TestOptions:test_precision()
  eq(format_with({precision = 2}, vector {1.23456, -7}), "tensor([ 1.23, -7.00])")
  eq(format_with({precision = 2}, vector {1e-5, 1}), "tensor([1.00e-05, 1.00e+00])")
  eq(format_with({precision = 0}, vector {1.5, 22.25}), "tensor([ 2, 22])")
  eq(format_with({precision = 8}, vector {0.5}), "tensor([0.50000000])")
end

function TestOptions:test_threshold_and_edgeitems()
  local small = {threshold = 5, edgeitems = 2}
  eq(format_with(small, arange {6}), "tensor([0., 1.,  ..., 4., 5.])")
  eq(format_with(small, arange {5}), "tensor([0., 1., 2., 3., 4.])")
  eq(format_with(small, arange({5, 2}, "int64")), [=[
tensor([[0, 1],
        [2, 3],
        ...,
        [6, 7],
        [8, 9]])]=])
  eq(format_with({threshold = math.huge}, arange({1200}, "int64")):find("...", 1, true), nil)
  eq(format_with({threshold = 0}, tensor({}, {7})), "tensor(7.)")
  eq(format_with({threshold = 0}, vector {7}), "tensor([7.])")
end

-- PyTorch 1.13 fails here (one dimension prints whole, more raise); this is its later text.
function TestOptions:test_no_edgeitems()
  eq(format_with({threshold = 5, edgeitems = 0}, arange {6}), "tensor([...])")
  eq(format_with({threshold = 5, edgeitems = 0}, arange({3, 2}, "int32")),
    "tensor([...], dtype='int32')")
end

function TestOptions:test_linewidth()
  eq(format_with({linewidth = 20}, arange({7}, "int64")), [=[
tensor([0, 1, 2, 3,
        4, 5, 6])]=])
  eq(format_with({linewidth = 1}, arange({2}, "int64")), "tensor([0,\n        1])")
  eq(format_with({linewidth = 20}, tensor({0, 3}, {}, "int32")),
    "tensor([],\n       size=(0, 3),\n       dtype='int32')")
  eq(format_with({linewidth = math.huge}, arange({999}, "int64")):find("\n"), nil)
end

function TestOptions:test_a_suffix_that_does_not_fit_takes_a_line()
  -- 13 characters, 2 more by PyTorch's count, and 18 for ", dtype=torch.int8": 33 in all.
  local t = vector({0, 1}, "int8")
  eq(format_with({linewidth = 33}, t), "tensor([0, 1], dtype='int8')")
  eq(format_with({linewidth = 32}, t), "tensor([0, 1],\n       dtype='int8')")
end

function TestOptions:test_sci_mode()
  eq(format_with({sci_mode = true}, vector {1.5, -2}), "tensor([1.5000e+00, -2.0000e+00])")
  eq(format_with({sci_mode = false}, vector {1e-5, 1}), "tensor([    0.0000,     1.0000])")
  eq(format_with({sci_mode = false}, vector {1, 1e8, 0}),
    "tensor([        1., 100000000.,         0.])")
  eq(format_with({sci_mode = true}, vector {1, -2, 3, 1 / 0}),
    "tensor([1.0000e+00, -2.0000e+00, 3.0000e+00, inf])")
  eq(format_with({sci_mode = true}, tensor({}, {12})), "tensor(1.2000e+01)")
  eq(format_with({sci_mode = false}, tensor({}, {1e9})), "tensor(1000000000.)")
end

function TestOptions:test_sci_mode_has_no_say_without_finite_values()
  eq(format_with({sci_mode = true}, vector {0, 0}), "tensor([0., 0.])")
  eq(format_with({sci_mode = true}, vector {1 / 0, -0.0}), "tensor([inf, -0.])")
  eq(format_with({sci_mode = true}, vector({1, 2}, "int64")), "tensor([1, 2])")
end

TestParts = {}

function TestParts:test_device()
  eq(format(tensor({2}, {1, 2}, "float32", "cuda:0")), "tensor([1., 2.], device='cuda:0')")
  eq(format(tensor({2}, {1, 2}, "float64", "cpu:1")),
    "tensor([1., 2.], device='cpu:1', dtype='float64')")
  eq(format(tensor({0, 2}, {}, "int64", "cuda:1")),
    "tensor([], device='cuda:1', size=(0, 2), dtype='int64')")
end

function TestParts:test_nan_and_zero_have_pytorchs_signs()
  local nan = 0 / 0
  eq(format(vector {nan, -nan, -0.0, 0.0}), "tensor([nan, nan, -0., 0.])")
  eq(format(vector {nan, -1 / 0, 0.5}), "tensor([   nan,   -inf, 0.5000])")
end

function TestParts:test_whole_numbers()
  local least, most = math.mininteger, math.maxinteger
  eq(format(vector({least, most}, "int64")),
    "tensor([-9223372036854775808,  9223372036854775807])")
  eq(format(vector({true, false}, "bool")), "tensor([ True, False])")
end

function TestParts:test_a_view_prints_its_own_elements()
  eq(format(arange({4, 4}, "int64")[{ {2, 3}, {-2, -1} }]), "tensor([[ 6,  7],\n        [10, 11]])")
end

TestSpeed = {}

-- Generous, for slow machines and sanitizers: it takes about a millisecond.
function TestSpeed:test_a_thousand_elements()
  local t = arange({10, 100}, "float64")
  local before = os.clock()
  for _ = 1, 10 do format(t) end
  luaunit.assertTrue((os.clock() - before) / 10 < 0.1)
end

os.exit(luaunit.LuaUnit.run())
