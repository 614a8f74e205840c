// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// EscapeJSON returns indented JSON in which characters that are not printed are escaped: control characters above those
// of ASCII, which JSON leaves alone and some terminals obey, and marks that hide or reorder text. Its values stay the
// same.
func EscapeJSON(text []byte) string {
	var b strings.Builder
	for _, c := range string(text) {
		switch {
		case c == '\n' || unicode.IsPrint(c):
			b.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// Prints reports whether all characters of a text are printed, but for line ends.
func Prints(text []byte) bool {
	return !strings.ContainsFunc(string(text), func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) })
}
