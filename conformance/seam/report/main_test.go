// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestParse: the cases of a test are counted, also those with a slash in their names, and not the cases of a case.
func TestParse(t *testing.T) {
	r := parse("TestA", `=== RUN   TestA
    a_test.go:12: pod "p" was not placed
--- FAIL: TestA (3.00s)
    --- PASS: TestA/Fit/one (1.00s)
    --- FAIL: TestA/Fit/two (1.00s)
    --- PASS: TestA/outer (1.00s)
        --- PASS: TestA/outer/inner (1.00s)
`)
	if r.Passed != 2 || len(r.Failed) != 1 || r.Failed[0] != "Fit/two" || r.Ended != "fail" ||
		r.Why != `pod "p" was not placed` {
		t.Errorf("%+v", r)
	}
}
