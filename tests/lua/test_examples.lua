-- Every example of the operator table, and of the functions in Lua, gives the value beside it.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"

-- The pieces of a row, split at its outer commas; strings stay in quotes.
local function split(text)
  local fields, field, depth, at = {}, "", 0, 1
  while at <= #text do
    local c = text:sub(at, at)
    local piece = c == '"' and text:match('^"[^"\\]*"', at)
    if c == '"' and not piece then -- with escapes
      local last = at + 1
      while text:sub(last, last) ~= '"' do
        last = last + (text:sub(last, last) == "\\" and 2 or 1)
      end
      piece = text:sub(at, last)
    end
    piece = piece or c
    if c == "(" then depth = depth + 1 elseif c == ")" then depth = depth - 1 end
    if c == "," and depth == 0 then
      fields[#fields + 1], field = field, ""
    else
      field = field .. piece
    end
    at = at + #piece
  end
  fields[#fields + 1] = field
  for i, f in ipairs(fields) do fields[i] = f:match "^%s*(.-)%s*$" end
  return fields
end

-- C's adjacent strings and escapes, as Lua reads them.
local function unquote(text)
  if text == "NULL" then return nil end
  return assert(load("return " .. text:gsub('"%s+"', '" .. "')))()
end

-- The rows of the table, as {name, example, value}.
local function rows()
  local source = support.read_file(here .. "../../src/tensor/ops.def")
  local list = {}
  source = source:gsub("/%*.-%*/", "")
  for kind, at in source:gmatch "TL_(%u+)()%(" do
    local depth, last, quoted = 0, at, false
    repeat
      local c = source:sub(last, last)
      if c == "\\" then
        last = last + 1
      elseif c == '"' then
        quoted = not quoted
      elseif not quoted then
        depth = depth + (c == "(" and 1 or c == ")" and -1 or 0)
      end
      last = last + 1
    until depth == 0
    local fields = split(source:sub(at + 1, last - 2))
    local n = #fields
    list[#list + 1] = {kind = kind, name = fields[1], doc = unquote(fields[n - 2]),
                       example = unquote(fields[n - 1]), value = unquote(fields[n])}
  end
  return list
end

-- The rows of the functions that are written in Lua, likewise.
local function lua_rows()
  local list = {}
  for _, row in ipairs(require "tensor.functions") do
    list[#list + 1] = {name = row[1], doc = row.doc, example = row.example, value = row.value}
  end
  return list
end

local function check(row)
  lu.assertNotNil(row.example, row.name .. " has no example")
  local result = assert(load("return " .. row.example, "=" .. row.name))()
  lu.assertEquals(tostring(result), row.value, row.name .. ": " .. row.example)
end

TestExamples = {}

function TestExamples:test_values()
  local count = 0
  for _, row in ipairs(rows()) do
    if row.doc then
      check(row)
      count = count + 1
    end
  end
  lu.assertTrue(count >= 40, "only " .. count .. " rows were read")
end

function TestExamples:test_functions_in_lua()
  for _, row in ipairs(lua_rows()) do
    lu.assertIsString(row.doc, row.name)
    lu.assertNotNil(row.example:find(row.name, 1, true), row.name)
    check(row)
  end
end

function TestExamples:test_every_row_is_a_function()
  for _, row in ipairs(rows()) do
    if row.doc then
      lu.assertIsFunction(tensor[row.name], row.name)
      if row.kind == "UNARY" or row.kind == "BINARY" then
        lu.assertIsFunction(tensor[row.name .. "_"], row.name .. "_")
      end
    end
  end
end

-- Every function of the library and every method has one row, an in-place form its operator's.
function TestExamples:test_every_function_has_a_row()
  local count = {}
  for _, row in ipairs(rows()) do
    if row.doc then
      count[row.name] = (count[row.name] or 0) + 1
      if row.kind ~= "OTHER" then count[row.name .. "_"] = (count[row.name .. "_"] or 0) + 1 end
    end
  end
  for _, row in ipairs(lua_rows()) do count[row.name] = (count[row.name] or 0) + 1 end
  for name, f in pairs(tensor) do
    if type(f) == "function" then lu.assertEquals(count[name], 1, name) end
  end
end

-- An example shows its own operator, by name or by sign.
function TestExamples:test_examples_show_their_operator()
  local SIGNS = {add = "+", sub = "-", mul = "*", div = "/", floor_divide = "//", remainder = "%",
                 pow = "^", equal = "=="}
  for _, row in ipairs(rows()) do
    if row.doc then
      lu.assertNotNil(row.example:find(row.name, 1, true) or
                      row.example:find(SIGNS[row.name] or row.name, 1, true), row.name)
    end
  end
end

os.exit(lu.LuaUnit.run())
