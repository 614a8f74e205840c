// SPDX-License-Identifier: Apache-2.0

package answers

import "encoding/binary"

// Rewrite returns the answers of a Step with other texts: messages, and names of nodes and pods. Equal texts must be
// replaced by equal ones, and different ones by different ones.
func Rewrite(answers []byte, replace func(string) string) ([]byte, error) {
	texts, rest, err := takeTexts(answers, nil)
	if err != nil {
		return nil, err
	}
	out := binary.AppendUvarint(nil, uint64(len(texts)))
	for _, text := range texts {
		text = replace(text)
		out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
	}
	return append(out, rest...), nil
}
