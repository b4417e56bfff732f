// Each line is a number and a key: calls allow for the key that many times at once, and prints the answers.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		count, key, _ := strings.Cut(lines.Text(), " ")
		times, _ := strconv.Atoi(count)
		answers := make(chan string)
		for range times {
			go func() { answers <- answer(key) }()
		}
		printed := make([]string, times)
		for index := range printed {
			printed[index] = <-answers
		}
		fmt.Printf("[%s]\n", strings.Join(printed, ", "))
	}
}

func answer(key string) string {
	allowed, remaining, retryAfterMs := allow(key)
	left := "null"
	if remaining >= 0 {
		left = fmt.Sprint(remaining)
	}
	return fmt.Sprintf("[%t, %s, %d]", allowed, left, retryAfterMs)
}
