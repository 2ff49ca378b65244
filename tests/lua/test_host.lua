-- The program from outside: options, exit statuses, messages, the reading loop and Ctrl-C.  Drives
-- the program that TENSORLUA names.  What stock lua5.4 does too, it is held to the same way.

local luaunit = require "luaunit"
local equals, contains = luaunit.assertEquals, luaunit.assertStrContains

local program = os.getenv "TENSORLUA" or "build/tensorlua"

local function quote(word)
  return "'" .. word:gsub("'", [['\'']]) .. "'"
end

local function capture(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "a"
  pipe:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local scratch = capture "mktemp -d":match "[^\n]+"

local function script(text, name)
  return write(scratch .. "/" .. (name or "script.lua"), text)
end

-- Runs a shell command and returns its exit status (128 and the signal's number if one ended it),
-- standard output and standard error.
local function shell(command)
  local out, err = scratch .. "/out", scratch .. "/err"
  local _, how, status = io.popen(("{ %s; } >%s 2>%s"):format(command, out, err)):close()
  return how == "signal" and 128 + status or status, read(out), read(err)
end

-- Runs the program with a list of arguments; `with` may have `input`, a text, and `env`, a table.
local function run(arguments, with)
  with = with or {}
  local words = {"env -u LUA_INIT -u LUA_INIT_5_4"}
  for name, value in pairs(with.env or {}) do words[#words + 1] = name .. "=" .. quote(value) end
  words[#words + 1] = quote(program)
  for _, word in ipairs(arguments) do words[#words + 1] = quote(word) end
  words[#words + 1] = "<" .. write(scratch .. "/in", with.input or "")
  return shell(table.concat(words, " "))
end

-- Runs and asks for success and for exactly this output.
local function prints(expected, arguments, with)
  local status, out, err = run(arguments, with)
  equals(err, "")
  equals(out, expected)
  equals(status, 0)
end

-- Runs and asks for failure and for a message that begins with the program's name and `expected`.
local function fails(expected, arguments, with)
  local status, out, err = run(arguments, with)
  equals(err:sub(1, #program + 2 + #expected), program .. ": " .. expected)
  equals(status, 1)
  return err, out
end

TestOptions = {}

function TestOptions:test_code()
  prints("1\n2\n3\n", {"-e", "print(1)", "-eprint(2)", "-e", "print(3)"})
  prints("", {"-e", ""})
end

function TestOptions:test_version()
  local status, out = run {"-v"}
  equals(status, 0)
  luaunit.assertStrMatches(out, "tensorlua %d+%.%d+%.%d+  Lua 5%.4[^\n]*\n")
  status, out = run {"-v", "-e", "print(1)"}
  equals(status, 0)
  contains(out, "\n1\n")
end

function TestOptions:test_help()
  for _, option in ipairs {"-h", "--help"} do
    local status, out, err = run {option}
    equals({status, err}, {0, ""})
    contains(out, "usage: " .. program .. " [options] [script [args]]")
    for letter in ("elivEWh"):gmatch "." do contains(out, "\n  -" .. letter) end
  end
end

function TestOptions:test_wrong()
  for _, option in ipairs {"-x", "-ix", "-vE", "-Ex", "-Wx", "-hx", "--x", "--helpx"} do
    local err, out = fails("unrecognized option '" .. option .. "'\nusage: ",
                           {option, "-e", "print(1)"})
    contains(err, "-h, --help")
    equals(out, "")
  end
  fails("'-e' needs argument\n", {"-e"})
  fails("'-e' needs argument\n", {"-e", "-v"})
  fails("'-l' needs argument\n", {"-v", "-l"})
end

function TestOptions:test_require()
  script("return {name = ...}", "some_module.lua")
  local env = {LUA_PATH = scratch .. "/?.lua"}
  prints("some_module\n", {"-l", "some_module", "-e", "print(some_module.name)"}, {env = env})
  prints("some_module\n", {"-lsome_module", "-e", "print(some_module.name)"}, {env = env})
  prints("some_module\tnil\n", {"-l", "g=some_module", "-e", "print(g.name, some_module)"},
         {env = env})
end

function TestOptions:test_require_fails()
  contains(fails("module 'no_such_module' not found:", {"-l", "no_such_module"}),
           "stack traceback:\n\t[C]: in function 'require'")
  script("error 'in the module'", "bad_module.lua")
  local env = {LUA_PATH = scratch .. "/?.lua"}
  fails(scratch .. "/bad_module.lua:1: in the module\nstack traceback:\n",
        {"-l", "bad_module", "-e", "print(1)"}, {env = env})
end

function TestOptions:test_init()
  prints("init\ncode\n", {"-e", "print 'code'"}, {env = {LUA_INIT = "print 'init'"}})
  prints("new\n", {"-e", ""}, {env = {LUA_INIT = "print 'old'", LUA_INIT_5_4 = "print 'new'"}})
  local file = script("print('file', ...)")
  prints("file\n", {"-e", "", "-"}, {env = {LUA_INIT = "@" .. file}})
  fails("LUA_INIT:1: no", {"-e", "print(1)"}, {env = {LUA_INIT = "error 'no'"}})
  fails("LUA_INIT_5_4:1: no", {"-e", "print(1)"}, {env = {LUA_INIT_5_4 = "error 'no'"}})
end

function TestOptions:test_ignore_environment()
  local env = {LUA_INIT = "print 'init'", LUA_PATH = "/nowhere/?.lua", LUA_CPATH = "/nowhere/?.so"}
  local code = "print(package.path:find('nowhere') or package.cpath:find('nowhere'))"
  prints("init\n2\n", {"-e", code}, {env = env})
  prints("nil\n", {"-E", "-e", code}, {env = env})
  prints("nil\n", {"-e", code, "-E"}, {env = env})
end

function TestOptions:test_warnings()
  local code = "warn('one', ' two') setmetatable({}, {__gc = function() error 'late' end})"
  local status, _, err = run {"-W", "-e", code}
  equals(status, 0)
  contains(err, "Lua warning: one two\n")
  contains(err, "late")
  prints("", {"-e", code})
  prints("", {"-e", code, "-W", "-e", "warn '@off'"})
  status, _, err = run {"-e", "warn 'a' warn '@on' warn('@', 'off') warn 'b' warn '@off' warn 'c'"}
  equals({status, err}, {0, "Lua warning: @off\nLua warning: b\n"})
end

function TestOptions:test_order()
  local status, out = run({"-e", "x = 1", "-v", "-i", "-e", "x = x + 1"}, {input = "x"})
  equals(status, 0)
  contains(out, "> 2\n")
end

TestScript = {}

function TestScript:test_arguments()
  local file = script [[
    print(#arg, ...)
    for i = -4, 3 do io.write(tostring(arg[i]), " ") end
    print(arg[-5])]]
  prints(("2\ta b\t-c\nnil %s -e x=1 %s a b -c nil nil\n"):format(program, file),
         {"-e", "x=1", file, "a b", "-c"})
  prints(("0\nnil nil nil %s %s nil nil nil nil\n"):format(program, file), {file})
  prints(program .. "\t-e\n", {"-e", "print(arg[0], arg[1])"})
end

function TestScript:test_changed_arguments()
  local file = script "print(...)"
  prints("x\ty\n", {"-e", "arg = {'x', 'y'}", file, "a"})
  fails("'arg' is not a table\n", {"-e", "arg = nil", file})
  local endless = "arg = setmetatable({}, {__len = function() return %s end})"
  for _, length in ipairs {"1 << 30", "1 << 31", "1 << 32", "math.maxinteger"} do
    contains(fails("", {"-e", endless:format(length), file}), "too many arguments to script")
  end
end

function TestScript:test_end_of_options()
  local file = script "print(...)"
  prints("-e\n", {"--", file, "-e"})
  fails("cannot open -e", {"--", "-e"})
  fails("cannot open -", {"--", "-"})
end

function TestScript:test_standard_input()
  prints("0\tnil\n", {}, {input = "print(select('#', ...), arg[1])"})
  prints("a\tb\n", {"-", "a", "b"}, {input = "print(...)"})
  prints("-\n", {"-"}, {input = "print(arg[0])"})
  prints("1\n0\n", {"-e", "print(1)", "-"}, {input = "print(select('#', ...))"})
  prints("", {"-e", ""}, {input = "print 'not run'"})
  prints("0\n", {"-E"}, {input = "print(select('#', ...))"})
  fails("stdin:2: no\nstack traceback:\n", {"-"}, {input = "\nerror 'no'"})
  fails("stdin:1: ", {}, {input = "print("})
end

function TestScript:test_first_line()
  prints("2\n", {script "#!/usr/bin/env tensorlua\nprint(debug.getinfo(1).currentline)"})
  local file = script(("#!%s\nprint(...)"):format(capture("realpath " .. quote(program))))
  local status, out = shell(("chmod +x %s; %s a"):format(file, file))
  equals({status, out}, {0, "a\n"})
end

function TestScript:test_binary()
  local file = scratch .. "/script.luac"
  local code = "io.open(%q, 'wb'):write(string.dump(load 'print(...)')):close()"
  prints("", {"-e", code:format(file)})
  prints("a\n", {file, "a"})
end

function TestScript:test_missing()
  fails("cannot open ", {scratch .. "/nowhere.lua"})
  fails("cannot read ", {scratch})
end

function TestScript:test_library()
  prints("true\ttable\tfunction\tfunction\n",
         {"-e", "print(tensor == require 'tensor', type(tensor), type(sync), type(benchmark))"})
end

function TestScript:test_generational()
  prints("generational\n", {"-e", "print(collectgarbage 'incremental')"})
end

function TestScript:test_closes_variables()
  local close = "local x <close> = setmetatable({}, "
                .. "{__close = function(_, e) print('closed', e) end}) "
  prints("closed\tnil\n", {"-e", close})
  local err, out = fails("no\n", {"-e", close .. "error('no', 0)"})
  contains(out, "closed\tno\n")
  contains(err, "stack traceback:")
  fails("(command line):1: late\n",
        {"-e", "local x <close> = setmetatable({}, {__close = function() error 'late' end})"})
end

function TestScript:test_finalizers()
  prints("end\n", {"-e", "x = setmetatable({}, {__gc = function() print 'end' end})"})
  prints("", {"-e", "x = setmetatable({}, {__gc = function() error 'late' end})"})
end

-- Ends a script that has taken every global away and forbidden to ask for one.
local no_globals = [[
  local pairs, setmetatable, error = pairs, setmetatable, error
  for name in pairs(_G) do _ENV[name] = nil end
  setmetatable(_ENV, {__index = function(_, name) error("no " .. name, 0) end}) ]]

function TestScript:test_no_globals()
  prints("", {"-e", no_globals})
  fails("no x\n", {"-e", no_globals .. "x()"})
  fails("no arg\n", {"-e", no_globals, script ""})
end

TestErrors = {}

function TestErrors:test_traceback()
  local file = script "local function f()\n  error 'no'\nend\nf()"
  equals(fails("", {file}), ([[
PROGRAM: FILE:2: no
stack traceback:
	[C]: in function 'error'
	FILE:2: in local 'f'
	FILE:4: in main chunk
	[C]: in ?
]]):gsub("PROGRAM", program):gsub("FILE", file), nil)
end

function TestErrors:test_syntax_error_has_no_traceback()
  local file = script "x ="
  equals(fails("", {file}), ("%s: %s:1: unexpected symbol near <eof>\n"):format(program, file))
end

function TestErrors:test_objects()
  fails("(error object is a table value)\nstack traceback:", {"-e", "error {}"})
  fails("(error object is a nil value)", {"-e", "error()"})
  fails("12\nstack traceback:", {"-e", "error(12)"})
  local object = "error(setmetatable({}, {__tostring = function() %s end}))"
  equals(fails("", {"-e", object:format "return 'text'"}), program .. ": text\n")
  fails("(error object is a table value)", {"-e", object:format "return 1"})
  fails("", {"-e", object:format "error 'again'"})
end

function TestErrors:test_stack_overflow()
  local err = fails("(command line):1: stack overflow",
                    {"-e", "local function f() return 1 + f() end f()"})
  contains(err, "\n\t...\t(skipping ")
end

function TestErrors:test_memory()
  luaunit.skipIf(program:find "san%-thread", "ThreadSanitizer takes a refused block for an error")
  local status, _, err = run {"-e", "io.read(1 << 45)"}
  equals(status, 1)
  contains(err, program .. ": not enough memory\n") -- after a sanitizer's warning
end

function TestErrors:test_first_error_ends()
  local _, out = fails("(command line):1: no", {"-e", "error 'no'", "-e", "print 'not run'"})
  equals(out, "")
  _, out = fails("(command line):1: no", {"-i", "-e", "error 'no'"}, {input = "print 'not run'"})
  luaunit.assertNotStrContains(out, "not run")
end

function TestErrors:test_exit()
  for code, status in pairs {["os.exit()"] = 0, ["os.exit(7)"] = 7, ["os.exit(false)"] = 1,
                             ["os.exit(3, true)"] = 3, ["pcall(os.exit, 4)"] = 4,
                             ["coroutine.wrap(function() os.exit(5) end)()"] = 5,
                             ["coroutine.wrap(function() pcall(os.exit, 6, true) end)()"] = 6} do
    local got, out, err = run {"-e", "print 'before' " .. code .. " print 'after'"}
    equals({code, got, out, err}, {code, status, "before\n", ""})
  end
end

function TestErrors:test_exit_closes()
  local close = "local x <close> = setmetatable({}, {__close = function() print 'closed' end}) "
  prints("", {"-e", close .. "os.exit(true)"})
  prints("closed\n", {"-e", close .. "os.exit(true, true)"})
end

function TestErrors:test_output_that_cannot_be_written()
  local function to(where)
    return shell(("%s -e 'io.write(1)' %s"):format(quote(program), where))
  end
  for _, where in ipairs {">/dev/full", ">&-"} do
    local status, _, err = to(where)
    equals({where, status}, {where, 1})
    contains(err, program .. ": cannot write to standard output: ")
  end
  equals(shell(("%s -e '' >&-"):format(quote(program))), 0)
end

TestLoop = {}

-- Feeds lines to the loop and returns what followed the version's line, and standard error.
local function feed(input, arguments)
  local status, out, err = run(arguments or {"-i"}, {input = input})
  equals(status, 0)
  return out:match "^[^\n]*\n(.*)$", err
end

function TestLoop:test_values()
  equals(feed "1, nil, 'x'\n=2\nlocal y = 3\nx = 4\nx\n\n-- nothing\n",
         "> 1\tnil\tx\n> 2\n> > > 4\n> > > \n")
  equals(feed "6 * 7", "> 42\n> \n")
end

function TestLoop:test_incomplete()
  equals(feed "for i = 1, 2 do\nprint(i)\nend\n", "> >> >> 1\n2\n> \n")
  equals(feed "1 +\n2\n", "> >> 3\n> \n")
  equals(feed "math.max(1,\n2)\n", "> >> 2\n> \n")
  equals(feed "[[a\n\nb]]\n", "> >> >> a\n\nb\n> \n")
  local out, err = feed "do\n"
  equals(out, "> >> > \n")
  equals(err, "stdin:1: 'end' expected near <eof>\n")
end

function TestLoop:test_errors_go_on()
  local out, err = feed "error 'no'\nx = = 1\nerror {}\n1\n"
  equals(out, "> > > > 1\n> \n")
  equals(err, [[
stdin:1: no
stack traceback:
	[C]: in function 'error'
	stdin:1: in main chunk
	[C]: in ?
stdin:1: unexpected symbol near '='
(error object is a table value)
stack traceback:
	[C]: in function 'error'
	stdin:1: in main chunk
	[C]: in ?
]])
end

function TestLoop:test_prompts()
  equals(feed "_PROMPT = 'a ' _PROMPT2 = 12\ndo\nend\n", "> a 12a \n")
  local bad = "_PROMPT = setmetatable({}, {__tostring = function() error 'no' end})\n1\n"
  equals(feed(bad), "> > 1\n> \n")
end

function TestLoop:test_print_is_the_global_one()
  equals(feed "do local p = print print = function(...) p('got', ...) end end\n1\n",
         "> > got\t1\n> \n")
  local out, err = feed "print = nil\n1\ndo io.write 'on\\n' end\n"
  equals(out, "> > > on\n> \n")
  equals(err, "no global 'print' to show the values\n")
  out, err = feed("1\n", {"-i", "-e", no_globals})
  equals({out, err}, {"> > \n", "no print\n"})
end

function TestLoop:test_long_lines_and_zeros()
  equals(feed("#'" .. ("x"):rep(1000000) .. "'\n#'a\0b'\n"), "> 1000000\n> 3\n> \n")
end

function TestLoop:test_after_script()
  local out = feed("y\narg[1]\n", {"-i", script "y = ...", "value"})
  equals(out, "> value\n> value\n> \n")
end

function TestLoop:test_shares_standard_input()
  equals(feed "io.read()\na line\n1\n", "> a line\n> 1\n> \n")
end

function TestLoop:test_exit()
  equals(run({"-i"}, {input = "os.exit(9)\n"}), 9)
end

-- Runs the program on a pseudo-terminal; `steps` are shell commands whose output is typed.  The
-- function `prompts N` in them waits until the terminal has shown N prompts.  The shell that
-- script(1) starts gives way to the program: dash would make the Ctrl-C its own exit status.
local function on_terminal(steps)
  luaunit.skipIf(capture "command -v script" == "", "needs script(1)")
  local screen = write(scratch .. "/screen", "")
  local command = quote("exec " .. program)
  local status, out = shell(([[
    prompts() { n=0; while [ "$(grep -o '> ' %s | wc -l)" -lt "$1" ] && [ $n -lt 200 ]; do
      n=$((n + 1)); sleep 0.05; done; }
    { %s; } | SHELL=/bin/sh script -qefc %s %s]]):format(screen, steps, command, screen))
  return status, out:gsub("\r", "")
end

function TestLoop:test_terminal()
  local status, out = on_terminal "prompts 1; printf '6 * 7\\n'; prompts 2; printf '\\004'"
  equals(status, 0)
  contains(out, "tensorlua")
  contains(out, "\n42\n> ")
end

TestInterrupt = {}

-- A shell that io.popen starts is the program's child, and PPID the program.
-- The endless loops allocate: ThreadSanitizer delivers a signal only where the C library is called.
local soon = "local kill = io.popen 'sleep 0.2; kill -INT $PPID' "
local endless = "while true do local t = {} end"

-- ThreadSanitizer keeps a signal back until the program next calls into it, perhaps until its end.
function TestInterrupt:setUp()
  luaunit.skipIf(os.getenv "TENSORLUA_TEST_SAN" == "thread", "signals come late")
end

function TestInterrupt:test_script()
  local err = fails("interrupted!\nstack traceback:\n", {"-e", soon .. endless})
  contains(err, "(command line):1: in main chunk")
  local file = script(soon .. "\nlocal function f()\n" .. endless .. "\nend\nf()")
  err = fails("interrupted!\n", {file})
  contains(err, "script.lua:3: in local 'f'")
end

function TestInterrupt:test_blocked_read()
  local status, _, err = shell(("sleep 1 | %s -e %s"):format(quote(program),
    quote(soon:gsub("'", '"') .. "print(io.read())")))
  equals(status, 1)
  contains(err, "interrupted!")
end

function TestInterrupt:test_is_an_error()
  prints("false\tinterrupted!\n", {"-e", soon .. "print(pcall(load '" .. endless .. "'))"})
end

function TestInterrupt:test_too_late_for_the_script()
  fails("interrupted!\n", {"-e", "return io.popen 'kill -INT $PPID':close()"})
end

function TestInterrupt:test_coroutine()
  local code = "coroutine.wrap(function() io.popen 'kill -INT $PPID':close() print 'inside' end)() "
               .. "print 'not run'"
  local _, out = fails("interrupted!\nstack traceback:\n", {"-e", code})
  equals(out, "inside\n")
end

function TestInterrupt:test_second_one_kills()
  local code = "io.popen 'sleep 0.2; kill -INT $PPID; sleep 0.2; kill -INT $PPID' "
               .. "while true do pcall(load '" .. endless .. "') end"
  equals(run {"-e", code}, 128 + 2)
end

function TestInterrupt:test_loop()
  local chunk = soon .. endless .. "\n"
  local out, err = feed(chunk .. "1\n" .. chunk .. "2\n")
  equals(out, "> > 1\n> > 2\n> \n")
  equals(select(2, err:gsub("interrupted!\nstack traceback:\n", "")), 2)
end

function TestInterrupt:test_prompt()
  local status, out = on_terminal [[
    prompts 1; printf 'do\n'; prompts 2; printf '\003'; prompts 3; printf '6 * 7\n'
    prompts 4; printf 'while true do local t = {} end\n'; sleep 0.3; printf '\003'; prompts 5
    printf '6 * 8\n'; prompts 6; printf '\004']]
  equals(status, 0)
  contains(out, "\n42\n> ")
  contains(out, "interrupted!\nstack traceback:\n")
  contains(out, "\n48\n> ")
end

TestStart = {}

-- Time is measured by `make bench`; here, what it rests on: no thread before the first tensor.
function TestStart:test_threads_start_with_the_first_tensor()
  local count = [[
    local function threads()
      for line in io.lines "/proc/self/status" do
        local n = line:match "^Threads:%s*(%d+)"
        if n then return tonumber(n) end
      end
    end
    local before = threads()
    local x = tensor.ones(1)
    print(before, threads() - before)]]
  luaunit.skipIf(program:find "san%-", "a sanitizer has threads of its own")
  local blas = "OPENBLAS_NUM_THREADS=1 TENSORLUA_THREADS=3 "
  equals(capture(blas .. quote(program) .. " -e " .. quote(count)), "1\t3\n")
end

local status = luaunit.LuaUnit.run()
os.execute("rm -rf " .. quote(scratch))
os.exit(status)
