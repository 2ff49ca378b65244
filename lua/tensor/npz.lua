-- NumPy's .npz: a zip archive of .npy files, stored or deflated, of any size (Zip64).
local _, internal = ...
local codec, npy = internal.require "tensor.codec", internal.require "tensor.npy"
local quote = codec.quote

local M = {}

local LOCAL, CENTRAL, END = "PK\3\4", "PK\1\2", "PK\5\6"
local END64, LOCATOR64 = "PK\6\6", "PK\6\7"
local LOCAL_SIZE, CENTRAL_SIZE, END_SIZE, END64_SIZE, LOCATOR_SIZE = 30, 46, 22, 56, 20
local LONGEST_COMMENT = 0xffff
local NONE16, NONE32 = 0xffff, 0xffffffff -- the number stands in the field of Zip64
local STORED, DEFLATED = 0, 8
local ENCRYPTED, UTF8 = 1, 1 << 11
local VERSION, VERSION64 = 20, 45
local DATE = 1 << 5 | 1 -- the first day that the format knows: the same tensors make the same bytes

-- ---- reading ----

local function read_at(reader, at, size, what)
  if not reader:enter(at, size) then
    reader:fail(("is damaged: %s is said to be where the file is not"):format(what))
  end
  return reader:read(size, what)
end

-- The record at the end of the archive: where the directory is, its bytes, how many members.
local function find_directory(reader)
  local total = reader:size()
  local tail = math.min(total, END_SIZE + LONGEST_COMMENT)
  local text = read_at(reader, total - tail, tail, "its end")
  for at = #text - END_SIZE + 1, 1, -1 do
    if text:sub(at, at + 3) == END and
       at + END_SIZE - 1 + string.unpack("<I2", text, at + 20) == #text then
      return total - tail + at - 1, string.unpack("<I2I2I2I2I4I4", text, at + 4)
    end
  end
  reader:fail "is no .npz file, or is cut short: the record that ends a zip archive is missing"
end

-- The same of Zip64, when there is one before the other.
local function find_directory64(reader, end_at)
  if end_at < LOCATOR_SIZE then return nil end
  local locator = read_at(reader, end_at - LOCATOR_SIZE, LOCATOR_SIZE, "its end")
  if locator:sub(1, 4) ~= LOCATOR64 then return nil end
  local at = string.unpack("<i8", locator, 9)
  local record = read_at(reader, at, END64_SIZE, "the end record of Zip64")
  if record:sub(1, 4) ~= END64 then reader:fail "is damaged: its end record of Zip64 is none" end
  local disk, first, here, count, size, offset = string.unpack("<I4I4i8i8i8i8", record, 17)
  return at, disk, first, here, count, size, offset
end

-- The directory's text, how many members it has, and where it begins.
local function read_directory(reader)
  local at, disk, first, here, count, size, offset = find_directory(reader)
  if count == NONE16 or size == NONE32 or offset == NONE32 then
    local at64, disk64, first64, here64, count64, size64, offset64 = find_directory64(reader, at)
    if at64 then
      at, disk, first, here = at64, disk64, first64, here64
      count, size, offset = count64, size64, offset64
    end
  end
  if disk ~= 0 or first ~= 0 or here ~= count then
    reader:fail "is one part of several: only whole archives are read"
  end
  if offset < 0 or size < 0 or offset > at or size ~= at - offset then
    reader:fail "is damaged: its directory is not before its end"
  end
  return read_at(reader, offset, size, "its directory"), count, offset
end

-- The three numbers of a member that may stand in the extra field of Zip64 instead.
local function read_extra(reader, extra, numbers)
  local at = 1
  while at + 3 <= #extra do
    local id, size = string.unpack("<I2I2", extra, at)
    if id == 1 then
      local field, inside = extra:sub(at + 4, at + 3 + size), 1
      for _, name in ipairs {"inflated", "size", "offset"} do
        if numbers[name] == NONE32 then
          if inside + 7 > #field then reader:fail "is damaged: a field of Zip64 is too short" end
          numbers[name], inside = string.unpack("<i8", field, inside)
        end
      end
    end
    at = at + 4 + size
  end
end

-- The members in the directory's order.
local function parse_directory(reader, text, count)
  local members, at = {}, 1
  while #members < count do
    if at + CENTRAL_SIZE - 1 > #text or text:sub(at, at + 3) ~= CENTRAL then
      reader:fail(("is damaged: its directory should have %d members, and has %d")
                  :format(count, #members))
    end
    local flags, method = string.unpack("<I2I2", text, at + 8)
    local crc, size, inflated, name, extra, comment = string.unpack("<I4I4I4I2I2I2", text, at + 16)
    local member = {
      flags = flags, method = method, crc = crc, size = size, inflated = inflated,
      offset = string.unpack("<I4", text, at + 42),
    }
    at = at + CENTRAL_SIZE
    member.name = text:sub(at, at + name - 1)
    read_extra(reader, text:sub(at + name, at + name + extra - 1), member)
    at = at + name + extra + comment
    if at > #text + 1 then reader:fail "is damaged: its directory is cut short" end
    members[#members + 1] = member
  end
  if at ~= #text + 1 then reader:fail "is damaged: its directory has more than its members" end
  return members
end

-- The name without .npy, which is what the table has.
local function check_member(reader, member, seen)
  local key = member.name:match "^(.*)%.npy$"
  local name = quote(member.name)
  if not key then
    reader:fail(("has a member %s, which is no .npy"):format(name))
  elseif seen[key] then
    reader:fail(("is damaged: it has two members %s"):format(name))
  elseif member.flags & ENCRYPTED ~= 0 then
    reader:fail(("has an encrypted member %s"):format(name))
  elseif member.method ~= STORED and member.method ~= DEFLATED then
    reader:fail(("has a member %s packed by method %d: stored and deflated ones are read")
                :format(name, member.method))
  elseif member.method == STORED and member.size ~= member.inflated then
    reader:fail(("is damaged: member %s is stored, and has two sizes"):format(name))
  end
  seen[key] = true
  return key
end

-- Where the data of a member begins, behind a header of its own.
local function find_data(reader, member)
  local header = read_at(reader, member.offset, LOCAL_SIZE, "a member")
  local name, extra = string.unpack("<I2I2", header, 27)
  if header:sub(1, 4) ~= LOCAL or name ~= #member.name or
     read_at(reader, member.offset + LOCAL_SIZE, name, "a member's name") ~= member.name then
    reader:fail(("is damaged: there is no member %s where its directory says")
                :format(quote(member.name)))
  end
  return member.offset + LOCAL_SIZE + name + extra
end

-- Members may not share bytes, with each other or with the directory.
local function check_places(reader, members, directory)
  local order = table.move(members, 1, #members, 1, {})
  table.sort(order, function(a, b) return a.offset < b.offset end)
  for i, member in ipairs(order) do
    local limit = i < #order and order[i + 1].offset or directory
    if member.size < 0 or member.size > limit - member.data then
      reader:fail(("is damaged: member %s overlaps what follows it"):format(quote(member.name)))
    end
  end
end

function M.read(reader, prefix)
  local text, count, directory = read_directory(reader)
  local members = parse_directory(reader, text, count)
  local seen, tensors = {}, {}
  for _, member in ipairs(members) do
    member.key = check_member(reader, member, seen)
    member.data = find_data(reader, member)
  end
  check_places(reader, members, directory)
  for _, member in ipairs(members) do
    reader:rename(("%s: %s"):format(prefix, quote(member.name)))
    if not reader:enter(member.data, member.size,
                        member.method == DEFLATED and member.inflated or nil) then
      reader:fail(("is damaged: %d bytes cannot inflate to %d"):format(member.size,
                                                                       member.inflated))
    end
    local x, crc = npy.read(reader)
    if crc ~= member.crc then reader:fail "is damaged: its checksum is not that of its bytes" end
    tensors[member.key] = x
  end
  return tensors
end

-- ---- writing ----

-- With room for sizes of 64 bits, which are known only when the member is written.
local function local_header(member)
  return LOCAL .. string.pack("<I2I2I2I2I2I4I4I4I2I2", VERSION64, member.flags, member.method, 0,
                              DATE, member.crc, NONE32, NONE32, #member.name, 20) ..
         member.name .. string.pack("<I2I2i8i8", 1, 16, member.inflated, member.size)
end

local function central_header(member)
  local function short(number) return number < NONE32 and number or NONE32 end
  local extra = ""
  for _, number in ipairs {member.inflated, member.size, member.offset} do
    if number >= NONE32 then extra = extra .. string.pack("<i8", number) end
  end
  if extra ~= "" then extra = string.pack("<I2s2", 1, extra) end
  return CENTRAL .. string.pack("<I2I2I2I2I2I2I4I4I4I2I2I2I2I2I4I4", VERSION64, VERSION64,
                                member.flags, member.method, 0, DATE, member.crc,
                                short(member.size), short(member.inflated), #member.name, #extra,
                                0, 0, 0, 0, short(member.offset)) .. member.name .. extra
end

local function write_end(writer, count, offset)
  local at = writer:position()
  local size = at - offset
  if count >= NONE16 or size >= NONE32 or offset >= NONE32 then
    writer:write(END64 .. string.pack("<i8I2I2I4I4i8i8i8i8", END64_SIZE - 12, VERSION64,
                                      VERSION64, 0, 0, count, count, size, offset))
    writer:write(LOCATOR64 .. string.pack("<I4i8I4", 0, at, 1))
  end
  local count16 = math.min(count, NONE16)
  writer:write(END .. string.pack("<I2I2I2I2I4I4I2", 0, 0, count16, count16,
                                  math.min(size, NONE32), math.min(offset, NONE32), 0))
end

function M.check(prefix, name, x)
  npy.check(prefix, x)
  if #name + 4 > NONE16 then
    internal.fail(("%s: a name of %d bytes is too long"):format(prefix, #name))
  end
end

function M.write(writer, names, tensors, compress)
  local members = {}
  for i, name in ipairs(names) do
    local member = {
      name = name .. ".npy", method = compress and DEFLATED or STORED, crc = 0, size = 0,
      inflated = 0, offset = writer:position(), flags = name:find "[\x80-\xff]" and UTF8 or 0,
    }
    writer:write(local_header(member))
    writer:begin(compress)
    npy.write(writer, tensors[name])
    member.crc, member.size, member.inflated = writer:finish()
    writer:patch(member.offset, local_header(member))
    members[i] = member
  end
  local offset = writer:position()
  for _, member in ipairs(members) do writer:write(central_header(member)) end
  write_end(writer, #members, offset)
end

return M
