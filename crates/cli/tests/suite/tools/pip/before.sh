# An index with the package tiny, whose module prints a number.
mkdir -p "$FILES/simple/tiny"
cd "$FILES/simple/tiny"
python3 - <<END
import zipfile

ABOUT = "tiny-1.0.dist-info/"
FILES = {
    "tiny.py": "print(6 * 7)\n",
    ABOUT + "METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    ABOUT + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
FILES[ABOUT + "RECORD"] = "".join(f"{name},,\n" for name in [*FILES, ABOUT + "RECORD"])
with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in FILES.items():
        wheel.writestr(name, text)
END
sum=$(sha256sum tiny-1.0-py3-none-any.whl | cut -d ' ' -f 1)
echo "<a href=\"tiny-1.0-py3-none-any.whl#sha256=$sum\">tiny-1.0-py3-none-any.whl</a>" > index.html
