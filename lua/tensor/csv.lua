-- Numbers as text: lines of columns with a delimiter between them.  Fields may stand in double
-- quotes, and empty lines do not count.
local _, internal = ...
local codec = internal.require "tensor.codec"
local quote = codec.quote

local M = {}

local PIECE = 1 << 20 -- bytes read at a time
local BATCH = 128     -- numbers packed at a time
local BLOCK = 4096    -- numbers written at a time
local BOM = "\xef\xbb\xbf"

local BY_NAME = codec.by "name"

local WORDS = {nan = 0 / 0, inf = math.huge, infinity = math.huge, ["+inf"] = math.huge,
               ["+infinity"] = math.huge, ["-inf"] = -math.huge, ["-infinity"] = -math.huge}
WORDS["-nan"], WORDS["+nan"] = WORDS.nan, WORDS.nan

-- ---- reading ----

-- Iterates over the lines that are not empty, with their numbers.
local function lines(reader)
  local text, at, number = "", 1, 0
  local function next_line()
    local last = text:find("\n", at, true)
    while not last and reader:left() > 0 do
      local length = #text - at + 1
      text = text:sub(at) .. reader:read(math.min(reader:left(), PIECE), "its text")
      at, last = 1, text:find("\n", length + 1, true)
    end
    if at > #text then return nil end
    local line = text:sub(at, last and last - 1 or #text)
    at, number = (last or #text) + 1, number + 1
    if number == 1 and line:sub(1, 3) == BOM then line = line:sub(4) end
    line = line:match "^(.-)\r?$"
    if line:find "%S" then return line, number end
    return next_line()
  end
  return next_line
end

-- The field in quotes that begins at `at`, and the place behind it.
local function quoted_field(reader, line, number, at)
  local pieces = {}
  repeat
    local piece, behind = line:match('^"([^"]*)"()', at)
    if not piece then reader:fail(("has a quote in line %d that does not end"):format(number)) end
    pieces[#pieces + 1], at = piece, behind
  until line:sub(at, at) ~= '"'
  return table.concat(pieces, '"'), at
end

-- Calls f with each field and its column.
local function each_field(reader, line, number, delimiter, f)
  local at, column, field = 1, 0, nil
  repeat
    column = column + 1
    local behind
    if line:sub(at, at) == '"' then
      field, behind = quoted_field(reader, line, number, at)
      if behind <= #line and line:sub(behind, behind) ~= delimiter then
        reader:fail(("has text behind the quotes in line %d, column %d"):format(number, column))
      end
    else
      behind = line:find(delimiter, at, true) or #line + 1
      field = line:sub(at, behind - 1)
    end
    f(field, column)
    at = behind + 1
  until behind > #line
  return column
end

local function to_float(field)
  local number = not field:find "[xX]" and tonumber(field)
  return number or WORDS[field:match("^%s*(.-)%s*$"):lower()]
end

local function to_integer(low, high)
  return function(field)
    local number = not field:find "[xX]" and math.tointeger(tonumber(field))
    return number and number >= low and number <= high and number or nil
  end
end

local BOOLEANS = {["0"] = 0, ["1"] = 1, ["false"] = 0, ["true"] = 1}
local function to_bool(field) return BOOLEANS[field:match("^%s*(.-)%s*$"):lower()] end

-- How a field becomes a number of a dtype, or nil.
local function converter(row)
  if row.name == "bool" then return to_bool end
  local signed, bits = row.name:match "^(u?)int(%d+)$"
  if not bits then return to_float end
  bits = tonumber(bits)
  if signed == "u" then return to_integer(0, (1 << bits) - 1) end
  return to_integer(-(1 << bits - 1), (1 << bits - 1) - 1)
end

-- Collects numbers as the bytes of a dtype.
local function packer(format)
  local pieces, batch, count = {}, {}, 0
  local full = "<" .. format:rep(BATCH)
  local self = {}
  function self.add(number)
    count = count + 1
    batch[count] = number
    if count == BATCH then
      pieces[#pieces + 1] = string.pack(full, table.unpack(batch, 1, BATCH))
      count = 0
    end
  end
  function self.bytes()
    pieces[#pieces + 1] = string.pack("<" .. format:rep(count), table.unpack(batch, 1, count))
    return table.concat(pieces)
  end
  return self
end

-- The tensor, of rows x columns, and the names in the first line if that is a header.
function M.read(reader, prefix, options)
  local row, delimiter = BY_NAME[options.dtype or "float32"], options.delimiter or ","
  local convert, numbers = converter(row), packer(row.pack or "f")
  local names, rows, columns
  local current
  local function add(field, column)
    local number = convert(field)
    if not number then
      reader:fail(("has %s in line %d, column %d, which is no %s"):format(
        quote(field), current, column, row.pack == "f" and "number" or row.name))
    end
    numbers.add(number)
  end
  rows = 0
  for line, number in lines(reader) do
    local found
    current = number
    if options.header and not names then
      names = {}
      found = each_field(reader, line, number, delimiter, function(name, i) names[i] = name end)
    else
      found = each_field(reader, line, number, delimiter, add)
      rows = rows + 1
    end
    columns = columns or found
    if found ~= columns then
      reader:fail(("has %d columns in line %d, and %d before"):format(found, number, columns))
    end
  end
  local packed <close> = internal.open_string(prefix, numbers.bytes())
  local x = packed:tensor(row.pack and row.name or "float32", false, {rows, columns or 0})
  return x:to(row.name), names
end

-- ---- writing ----

-- The shortest of a few decimals that give the same number again.
local function float_writer(digits, same)
  local formats = {}
  for i = 0, 2 do formats[i + 1] = ("%%.%dg"):format(digits + i) end
  return function(x)
    if x ~= x then return "nan" end
    if x == math.huge or x == -math.huge then return x > 0 and "inf" or "-inf" end
    local text
    for _, format in ipairs(formats) do
      text = format:format(x)
      if same(tonumber(text), x) then break end
    end
    return text
  end
end

local write_double = float_writer(15, function(a, b) return a == b end)
local write_single = float_writer(7, function(a, b)
  return string.unpack("f", string.pack("f", a)) == b
end)

local function write_other(x)
  if x == true or x == false then return x and "1" or "0" end
  return ("%d"):format(x)
end

local function number_writer(dtype)
  if not dtype:find "float" then return write_other end
  return dtype == "float64" and write_double or write_single
end

local function write_name(name, delimiter)
  if not name:find '["\r\n]' and not name:find(delimiter, 1, true) then return name end
  return '"' .. name:gsub('"', '""') .. '"'
end

-- A tensor of two dimensions, and the names of its columns or nil.
function M.write(writer, x, delimiter, names)
  local rows, columns = x.shape[1], x.shape[2]
  local write = number_writer(x.dtype)
  if names then
    local fields = {}
    for i, name in ipairs(names) do fields[i] = write_name(name, delimiter) end
    writer:write(table.concat(fields, delimiter) .. "\n")
  end
  local step = math.max(1, BLOCK // math.max(1, columns))
  for first = 1, rows, step do
    local block = x[{ {first, math.min(first + step - 1, rows)}, {} }]:totable()
    for i, line in ipairs(block) do
      for j = 1, columns do line[j] = write(line[j]) end
      block[i] = table.concat(line, delimiter)
    end
    writer:write(table.concat(block, "\n") .. "\n")
  end
end

return M
