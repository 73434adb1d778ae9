"""Objects that grow, text, and other processes, in plain Python."""
import array, collections, hashlib, io, json, multiprocessing, os, random, re, subprocess, sys, zlib

random.seed(1)
numbers = [random.random() for _ in range(300000)]
print(sum(numbers), sorted(numbers)[1234])
text = json.dumps({"numbers": numbers, "words": ["w%d" % n for n in range(50000)]})
print(len(text), hashlib.sha256(text.encode()).hexdigest(), json.loads(text)["numbers"] == numbers)

# These objects grow by realloc: a list, bytes, a bytearray, an array, a string and a stream.
grown = []
for n in range(1000000):
    grown.append(n)
print(sum(grown), len(grown))
buffer = bytearray()
for n in range(3000):
    buffer += bytes([n % 251]) * 1000
print(len(buffer), hashlib.sha256(buffer).hexdigest())
del buffer[1000000:]
buffer.extend(b"x" * 5000000)
print(len(buffer), hashlib.sha256(bytes(buffer)).hexdigest())
doubles = array.array("d")
for n in range(200):
    doubles.extend([n / 7] * 5000)
print(len(doubles), sum(doubles))
line = ""
for n in range(200000):
    line += "ab"
print(len(line), len(re.findall("aba", line)))
stream = io.BytesIO()
for n in range(4000):
    stream.write(b"%06d" % n * 100)
print(len(stream.getvalue()), zlib.crc32(zlib.compress(stream.getvalue())))
print(len(pow(7, 3000000).to_bytes(1100000, "little")), pow(3, 400000) % 1000003)
table = {n: str(n) for n in range(300000)}
for n in range(0, 300000, 2):
    del table[n]
print(len(table), collections.Counter(len(v) for v in table.values()))
try:
    bytearray(1 << 46)
except MemoryError as error:
    print("MemoryError", error)


def square(n):
    mine = bytearray(n.to_bytes(4, "little") * 500000)
    return sum(mine[:4000]), sum(grown[:1000])


with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(square, range(20)))
pid = os.fork()
if pid == 0:
    grown.extend(range(1000000))
    os._exit(len(grown) // 1000000)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(subprocess.run([sys.executable, "-c", "print(len(bytearray(3000000)))"], capture_output=True).stdout)
print("to stderr", file=sys.stderr)
sys.exit(5)
