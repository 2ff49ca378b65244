-- JSON, as strictly as its grammar: for headers.  A value is a string, a number, a boolean, M.NULL,
-- an M.array {..., n = count} or an M.object {keys = {...}, values = {key = value}}.
local M = {}

M.NULL = setmetatable({}, {__name = "null"})

local DEEPEST = 64

local ESCAPES = {['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r",
                 t = "\t"}
local WORDS = {["true"] = true, ["false"] = false, null = M.NULL}

local parse_value

-- Raised as a table, so that no other error is taken for it.
local function refuse(at, what) error({at = at, what = what}, 0) end

local function skip(text, at) return text:match("^[ \t\r\n]*()", at) end

-- \uXXXX at `at`, perhaps two that make one character.
local function parse_unicode(text, at)
  local code = tonumber(text:match("^\\u(%x%x%x%x)", at) or refuse(at, "a broken escape"), 16)
  at = at + 6
  if code >= 0xd800 and code < 0xdc00 then
    local low = tonumber(text:match("^\\u(%x%x%x%x)", at) or "0", 16)
    if low < 0xdc00 or low > 0xdfff then refuse(at, "half a character") end
    return utf8.char(0x10000 + (code - 0xd800 << 10) + (low - 0xdc00)), at + 6
  elseif code >= 0xdc00 and code < 0xe000 then
    refuse(at, "half a character")
  end
  return utf8.char(code), at
end

local function parse_string(text, at)
  local pieces, first = {}, at
  at = at + 1
  while true do
    local plain, behind = text:match('^([^"\\%c]*)()', at)
    pieces[#pieces + 1] = plain
    local c = text:sub(behind, behind)
    if c == '"' then
      local value = table.concat(pieces)
      if not utf8.len(value) then refuse(first, "text that is not UTF-8") end
      return value, behind + 1
    elseif c ~= "\\" then
      refuse(behind, "text that does not end")
    end
    local letter = text:sub(behind + 1, behind + 1)
    if letter == "u" then
      pieces[#pieces + 1], at = parse_unicode(text, behind)
    else
      pieces[#pieces + 1] = ESCAPES[letter] or refuse(behind, "a broken escape")
      at = behind + 2
    end
  end
end

local function parse_number(text, at)
  local number, behind = text:match("^(%-?%d+)()", at)
  if not number or number:find "^%-?0%d" then refuse(at, "a broken number") end
  behind = text:match("^%.%d+()", behind) or behind
  behind = text:match("^[eE][+-]?%d+()", behind) or behind
  return tonumber(text:sub(at, behind - 1)), behind
end

-- Calls parse_one at each member until `close`; gives the place behind it.
local function parse_members(text, at, close, parse_one)
  at = skip(text, at + 1)
  if text:sub(at, at) == close then return at + 1 end
  while true do
    at = skip(text, parse_one(at))
    local c = text:sub(at, at)
    if c == close then return at + 1 end
    if c ~= "," then refuse(at, ("no comma and no '%s'"):format(close)) end
    at = skip(text, at + 1)
  end
end

local function parse_array(text, at, depth)
  local array = {n = 0}
  at = parse_members(text, at, "]", function(place)
    array.n = array.n + 1
    array[array.n], place = parse_value(text, place, depth)
    return place
  end)
  return array, at
end

local function parse_object(text, at, depth)
  local keys, values = {}, {}
  at = parse_members(text, at, "}", function(place)
    local key
    if text:sub(place, place) ~= '"' then refuse(place, "no name") end
    local first = place
    key, place = parse_string(text, place)
    if values[key] ~= nil then refuse(first, "a name that was there before") end
    place = skip(text, place)
    if text:sub(place, place) ~= ":" then refuse(place, "no colon") end
    keys[#keys + 1] = key
    values[key], place = parse_value(text, skip(text, place + 1), depth)
    return place
  end)
  return {keys = keys, values = values}, at
end

function parse_value(text, at, depth)
  local c = text:sub(at, at)
  if c == '"' then return parse_string(text, at) end
  if c == "{" or c == "[" then
    if depth == DEEPEST then refuse(at, "nested too deeply") end
    return (c == "{" and parse_object or parse_array)(text, at, depth + 1)
  end
  local word, behind = text:match("^(%a+)()", at)
  if word and WORDS[word] ~= nil then return WORDS[word], behind end
  return parse_number(text, at)
end

-- The value of all of a text; or nil, where (from 1), and what is wrong there.
function M.decode(text)
  local ok, value = pcall(function()
    local value, at = parse_value(text, skip(text, 1), 0)
    at = skip(text, at)
    if at <= #text then refuse(at, "more than one value") end
    return value
  end)
  if ok then return value end
  if type(value) ~= "table" then error(value, 0) end
  return nil, value.at, value.what
end

-- A string with its quotes.
function M.encode_string(text)
  return '"' .. text:gsub('[%c"\\]', function(c)
    return (c == '"' or c == "\\") and "\\" .. c or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

return M
