# A registry with the crate tiny.
mkdir -p tiny-1.0.0/src "$FILES/cargo/ti/ny"
cat > tiny-1.0.0/Cargo.toml <<END
[package]
name = "tiny"
version = "1.0.0"
edition = "2021"
END
echo 'pub fn answer() -> u32 { 6 * 7 }' > tiny-1.0.0/src/lib.rs
tar -czf "$FILES/cargo/tiny-1.0.0.crate" tiny-1.0.0
sum=$(sha256sum "$FILES/cargo/tiny-1.0.0.crate" | cut -d ' ' -f 1)
cat > "$FILES/cargo/ti/ny/tiny" <<END
{"name": "tiny", "vers": "1.0.0", "deps": [], "cksum": "$sum", "features": {}, "yanked": false}
END
cat > "$FILES/cargo/config.json" <<END
{"dl": "https://registry.example.org/files/cargo/{crate}-{version}.crate"}
END
