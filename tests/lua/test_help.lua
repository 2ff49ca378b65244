-- The catalogue of functions, help, and docs/reference.md, which is made from it.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals = lu.assertEquals

local sections = require "tensor.catalogue"()

-- What f prints, without the last line break.
local function printed(f, ...)
  local lines, real = {}, print
  function print(text) lines[#lines + 1] = text end
  local ok, message = pcall(f, ...)
  print = real
  if not ok then error(message, 0) end
  return table.concat(lines, "\n")
end

local function help(...) return printed(tensor.help, ...) end

local function find(name)
  for _, section in ipairs(sections) do
    for _, entry in ipairs(section) do
      if entry.name == name then return entry, section.title end
    end
  end
end

TestCatalogue = {}

-- In-place forms of operators are said in the operator's entry.
function TestCatalogue:test_has_every_function_once()
  local count, total = {}, 0
  for _, section in ipairs(sections) do
    lu.assertTrue(#section > 0, section.title)
    for _, entry in ipairs(section) do
      count[entry.name] = (count[entry.name] or 0) + 1
      total = total + 1
    end
  end
  local function look(name)
    local operator = name:match "^(.+)_$"
    if operator and not count[name] then
      lu.assertStrContains(table.concat(find(operator).notes, ", "), ("`%s`"):format(name))
    else
      equals(count[name], 1, name)
    end
  end
  for name, value in pairs(tensor) do
    if type(value) == "function" then look(name) end
    if type(value) == "table" then
      for member in pairs(value) do look(name .. "." .. member) end
    end
  end
  lu.assertTrue(total > 280, total)
end

function TestCatalogue:test_sections()
  for name, title in pairs {zeros = "Creation", where = "Element-wise", cumsum_ = "Order",
      mean = "Reductions", stack = "Shape", gather = "Indexing", ["linalg.svd"] = "Linear algebra",
      randn = "Random", load = "Files", sync = "Waiting and control", einsum = "Linear algebra"} do
    equals(select(2, find(name)), title, name)
  end
end

-- A function that is being traced may not wait for values: the sentence names what did.
function TestCatalogue:test_what_waits_says_so()
  for _, section in ipairs(sections) do
    for _, entry in ipairs(section) do
      local example = assert(load("return " .. entry.example))
      local ok, message
      printed(function()
        ok, message = pcall(tensor.compile(function() local _ = example() end))
      end)
      local waits = false
      if not ok and message:find("has no values to read", 1, true) then
        waits = message:find("compile: " .. entry.name .. ":", 1, true)
                or message:find(entry.name .. ": compile:", 1, true)
                or entry.name == "benchmark" -- its sync does
      end
      local note = entry.notes[1]
      waits = waits or entry.name == "set_num_threads" -- for threads, not for values
      equals(note == "waits", waits and true or false, entry.name .. ": " .. tostring(message))
    end
  end
end

function TestCatalogue:test_what_may_wait_says_so()
  for _, name in ipairs {"index", "index_put_", "one_hot", "repeat_interleave"} do
    equals(find(name).notes[1], "may wait", name)
  end
end

-- What the note says of views holds for the memory: what is written to the tensor is seen in them.
function TestCatalogue:test_views_share_memory()
  local x = function() return tensor.zeros(2, 3, 4) end
  local calls = {
    t = function(f) local m = x()[1]; return m, f(m) end,
    squeeze = function(f) local m = x():reshape(2, 1, 12); return m, f(m) end,
    expand = function(f) local m = tensor.zeros(2, 1); return m, f(m, 2, 3) end,
    transpose = {1, 2}, swapaxes = {1, 2}, permute = {3, 1, 2}, movedim = {1, 2}, view = {6, 4},
    unsqueeze = {1}, narrow = {3, 2, 2}, select = {2, 1}, diagonal = {}, unfold = {3, 2, 1},
    unflatten = {3, 2, 2}, reshape = {-1}, flatten = {},
  }
  for name, call in pairs(calls) do
    local source, view
    if type(call) == "function" then
      source, view = call(tensor[name])
    else
      source = x()
      view = tensor[name](source, table.unpack(call))
    end
    lu.assertStrContains(table.concat(find(name).notes, ", "), "a view", name)
    source:fill_(1)
    lu.assertTrue(view:sum():item() > 0, name)
  end
  for _, name in ipairs {"clone", "flip", "sqrt", "cat", "tile", "sum"} do
    lu.assertNotStrContains(table.concat(find(name).notes, ", "), "view", name)
  end
end

TestHelp = {}

function TestHelp:test_of_a_function()
  local text = "softmax(x, dim): exp(x) as shares of its sum along a dimension\n" ..
               "> tensor{0, 0, 1000}:softmax(1)\ntensor([0., 0., 1.])"
  equals(help "softmax", text)
  equals(help(tensor.softmax), text)
  equals(help(tensor(1).softmax), text)
  equals(help "x:softmax", text)
  equals(help "tensor.softmax", text)
end

function TestHelp:test_says_notes()
  equals(help "sqrt", "sqrt(x): square root (in place: sqrt_)\n" ..
                      "> tensor.sqrt(tensor{4, 2})\ntensor([2.0000, 1.4142])")
  equals(help "sqrt_", help "sqrt")
  equals(help(tensor.sqrt_), help "sqrt")
  equals(help "nonzero":match "%((waits)%)\n", "waits")
  equals(help "-", help "neg" .. "\n\n" .. help "sub")
end

function TestHelp:test_of_a_function_in_a_table()
  equals(help(tensor.linalg.det), help "linalg.det")
  equals(help "linalg.det":match "^[^:]*", "linalg.det(A)")
end

function TestHelp:test_lists()
  local text = help()
  equals(help(tensor), text)
  for _, section in ipairs(sections) do
    lu.assertStrContains(text, section.title .. "\n  ")
    local lines = help(section.title:lower())
    equals(select(2, lines:gsub("\n", "")), #section)
    for _, entry in ipairs(section) do
      lu.assertStrContains(text:gsub("\n", " "), " " .. entry.name .. " ")
      lu.assertStrContains(lines, "\n  " .. entry.signature .. ": ")
    end
  end
  for line in text:gmatch "[^\n]+" do lu.assertTrue(#line <= 82, line) end
end

function TestHelp:test_unknown_names()
  equals(help "sofmax", "help: there is no function 'sofmax': perhaps softmax")
  equals(help "linalg.solv", "help: there is no function 'linalg.solv': perhaps linalg.solve")
  equals(help "repeat", "help: there is no function 'repeat': perhaps tile")
  equals(help "cum", "help: there is no function 'cum': " ..
                     "perhaps sum, cummax, cummin, cumprod, cumprod_")
  equals(help "xyzzy", "help: there is no function 'xyzzy': help() lists them all")
  equals(help "%d[", "help: there is no function '%d[': help() lists them all")
  equals(help(print), "help: this is no function of the library: help() lists all")
  equals(#help(("long"):rep(1e5)) < 120, true)
end

function TestHelp:test_refused()
  support.assert_raises("help: argument 1 must be a function or its name, not number", help, 1)
  support.assert_raises("help: argument 1 must be a function or its name, not tensor", help,
                        tensor(1))
  support.assert_raises("help: 2 arguments are too many: at most 1", help, "sum", 1)
end

-- In the loop alone it is a global too.
function TestHelp:test_is_a_name_of_the_terminal()
  local function run(options, input)
    local _, out, err = support.shell(("printf %s | %s %s"):format(support.quote(input),
                                      support.quote(support.program), options))
    return out, err
  end
  lu.assertStrContains(run("-i", [[help "dot"\n]]), "> " .. help "dot" .. "\n")
  equals(run("-e 'print(help)'", ""), "nil\n")
  lu.assertStrContains(run([[-i -e 'help = "mine"']], [[help\n]]), "> mine\n")
end

TestReference = {}

function TestReference:test_is_what_make_docs_writes()
  local made = require "tensor.reference"()
  local text = support.read_file(here .. "../../docs/reference.md")
  lu.assertTrue(made == text, "docs/reference.md is old: run `make docs`")
end

os.exit(lu.LuaUnit.run())
