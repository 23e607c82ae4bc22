# A proxy of modules with one, tiny.
mkdir -p "$FILES/go/example.org/tiny/@v"
cd "$FILES/go/example.org/tiny/@v"
echo v1.0.0 > list
echo '{"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}' > v1.0.0.info
echo 'module example.org/tiny' > v1.0.0.mod
python3 - <<END
import zipfile

FILES = {
    "go.mod": "module example.org/tiny\n",
    "tiny.go": "package tiny\n\nfunc Answer() int { return 6 * 7 }\n",
}
with zipfile.ZipFile("v1.0.0.zip", "w") as module:
    for name, text in FILES.items():
        module.writestr("example.org/tiny@v1.0.0/" + name, text)
END
