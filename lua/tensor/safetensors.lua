-- .safetensors: eight bytes with the length of a header, the header in JSON, and the elements.
local _, internal = ...
local codec, json = internal.require "tensor.codec", internal.require "tensor.json"
local quote = codec.quote

local M = {}

local LONGEST_HEADER = 100000000 -- as others have it
local ALIGNMENT = 8
local METADATA = "__metadata__"

local BY_NAME, BY_SAFETENSORS = codec.by "name", codec.by "safetensors"

-- ---- reading ----

local function read_header(reader)
  local length = string.unpack("<i8", reader:read(8, "the header's length"))
  if length < 0 or length > LONGEST_HEADER then
    reader:fail "is no .safetensors file, or is damaged: its header would be too long"
  end
  local text = reader:read(length, "its header")
  local header, at, what = json.decode(text)
  if at then reader:fail(("is damaged: its header has %s at byte %d"):format(what, at)) end
  if type(header) ~= "table" or not header.keys or text:sub(1, 1) ~= "{" then
    reader:fail "is damaged: its header is no object of JSON's"
  end
  return header, 8 + length
end

-- Integers from 0 in an array of JSON's, `count` of them if that is given; or nil.
local function sizes_of(array, count)
  if type(array) ~= "table" or not array.n or count and array.n ~= count then return nil end
  for _, size in ipairs(array) do
    if math.type(size) ~= "integer" or size < 0 then return nil end
  end
  return #array == array.n and table.move(array, 1, array.n, 1, {}) or nil
end

local function parse_entry(reader, name, entry)
  local fields = type(entry) == "table" and entry.values or {}
  local shape, places = sizes_of(fields.shape), sizes_of(fields.data_offsets, 2)
  if type(fields.dtype) ~= "string" or not shape or not places or places[1] > places[2] then
    reader:fail(("is damaged: its header does not describe %s"):format(quote(name)))
  end
  local row = BY_SAFETENSORS[fields.dtype]
  if not row then
    reader:fail(("holds %s of dtype %s, which is none of tensors"):format(quote(name),
                                                                           quote(fields.dtype)))
  end
  codec.check_dtype(reader, row.name)
  return {name = name, dtype = row.name, shape = shape, first = places[1], last = places[2]}
end

-- The elements of each follow those of another, and there is nothing else.
local function check_places(reader, entries, size)
  table.sort(entries, function(a, b)
    if a.first ~= b.first then return a.first < b.first end
    if a.last ~= b.last then return a.last < b.last end
    return a.name < b.name
  end)
  local at = 0
  for _, entry in ipairs(entries) do
    local name = quote(entry.name)
    if entry.first < at then
      reader:fail(("is damaged: the elements of %s overlap others"):format(name))
    elseif entry.first > at then
      reader:fail(("is damaged: there is a gap before the elements of %s"):format(name))
    elseif entry.last > size then
      reader:fail(("is cut short: %s should end at byte %d of the elements, and %d are there")
                  :format(name, entry.last, size))
    end
    at = entry.last
  end
  if at < size then reader:fail(("has %d bytes more than it says"):format(size - at)) end
end

function M.read(reader, prefix)
  local header, start = read_header(reader)
  local entries, tensors = {}, {}
  for _, name in ipairs(header.keys) do
    if name ~= METADATA then
      entries[#entries + 1] = parse_entry(reader, name, header.values[name])
    end
  end
  check_places(reader, entries, reader:left())
  for _, entry in ipairs(entries) do
    reader:rename(("%s: %s"):format(prefix, quote(entry.name)))
    reader:enter(start + entry.first, entry.last - entry.first)
    tensors[entry.name] = reader:tensor(entry.dtype, false, entry.shape)
    reader:leave()
  end
  return tensors
end

-- ---- writing ----

function M.check(prefix, name)
  if not utf8.len(name) then
    internal.fail(("%s: the name %s is not UTF-8"):format(prefix, quote(name)))
  elseif name == METADATA then
    internal.fail(("%s: no tensor can be called %s"):format(prefix, METADATA))
  end
end

-- Those with large elements come first, so that each begins at a multiple of its element's size.
function M.write(writer, names, tensors)
  local order = table.move(names, 1, #names, 1, {})
  local function size(name) return BY_NAME[tensors[name].dtype].size end
  table.sort(order, function(a, b)
    if size(a) ~= size(b) then return size(a) > size(b) end
    return a < b
  end)
  local entries, at = {}, 0
  for i, name in ipairs(order) do
    local x = tensors[name]
    local last = at + x:numel() * size(name)
    entries[i] = ('%s:{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(
      json.encode_string(name), BY_NAME[x.dtype].safetensors, table.concat(x.shape, ","), at, last)
    at = last
  end
  local header = "{" .. table.concat(entries, ",") .. "}"
  header = header .. (" "):rep(-#header % ALIGNMENT)
  writer:write(string.pack("<s8", header))
  for _, name in ipairs(order) do writer:tensor(tensors[name]) end
end

return M
