// Calls the recipe's allow with each line of the input as the key, and prints what it says.
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	keys := bufio.NewScanner(os.Stdin)
	for keys.Scan() {
		allowed, remaining, retryAfterMs := allow(keys.Text())
		left := "null"
		if remaining >= 0 {
			left = fmt.Sprint(remaining)
		}
		fmt.Printf("[%t, %s, %d]\n", allowed, left, retryAfterMs)
	}
}
