# A repository with what real ones have.
git init -q -b main work
cd work
mkdir -p .github/workflows .vscode .husky
for name in README.md .github/workflows/ci.yml .vscode/settings.json .envrc .mcp.json .husky/pre-commit; do
    echo one > $name
done
git add -A
git -c user.name=a -c user.email=a@example.org commit -q -m one
git clone -q --bare . "$FILES/real.git"
git -C "$FILES/real.git" update-server-info
