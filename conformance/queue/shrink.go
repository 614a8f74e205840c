// SPDX-License-Identifier: Apache-2.0

package queue

// Shrink drops steps as long as a difference remains: halves first, then single
// steps, until none can go.
func Shrink(h *History, our Make) *History {
	differs := func(ops []Op) bool { return Replay(&History{Ops: ops}, our) != "" }
	ops := h.Ops
	for chunk := len(ops) / 2; chunk >= 1; {
		shrunk := false
		for at := 0; at+chunk <= len(ops); {
			try := append(append([]Op(nil), ops[:at]...), ops[at+chunk:]...)
			if differs(try) {
				ops, shrunk = try, true
			} else {
				at += chunk
			}
		}
		if !shrunk || chunk > 1 {
			chunk /= 2
		}
	}
	return &History{Name: h.Name, Ops: ops}
}
