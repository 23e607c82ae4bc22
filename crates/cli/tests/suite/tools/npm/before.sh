# A registry with the package tiny, whose program prints a number.
mkdir package "$FILES/npm"
cat > package/package.json <<END
{"name": "tiny", "version": "1.0.0", "bin": "tiny.js"}
END
printf '#!/usr/bin/env node\nconsole.log(6 * 7)\n' > package/tiny.js
chmod 755 package/tiny.js
tar -czf "$FILES/npm/tiny-1.0.0.tgz" package
integrity=sha512-$(openssl dgst -sha512 -binary "$FILES/npm/tiny-1.0.0.tgz" | base64 -w 0)
cat > "$FILES/npm/tiny" <<END
{
  "name": "tiny",
  "dist-tags": {"latest": "1.0.0"},
  "time": {"created": "2020-01-01T00:00:00.000Z", "1.0.0": "2020-01-01T00:00:00.000Z"},
  "versions": {
    "1.0.0": {
      "name": "tiny",
      "version": "1.0.0",
      "bin": {"tiny": "tiny.js"},
      "dist": {
        "tarball": "https://registry.example.org/files/npm/tiny-1.0.0.tgz",
        "integrity": "$integrity"
      }
    }
  }
}
END
