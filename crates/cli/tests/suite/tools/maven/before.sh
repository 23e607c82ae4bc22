# The user has used Maven before: the plugins are there.
mkdir "$HOME/.m2"
cp -rL /usr/share/maven-repo "$HOME/.m2/repository"
