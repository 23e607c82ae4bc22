package main

import (
	"fmt"

	"example.org/tiny"
)

func main() {
	fmt.Println(tiny.Answer())
}
