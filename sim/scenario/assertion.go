// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// Assertion compares a metric with a number, or with another metric.
type Assertion struct {
	Text        string
	left, right operand
	op          string
}

// operand is a metric by name, or a number.
type operand struct {
	metric string
	number float64
}

var assertionForm = regexp.MustCompile(`^\s*([^\s<>=!]+)\s*(==|!=|<=|>=|<|>)\s*([^\s<>=!]+)\s*$`)

// ParseAssertion parses "METRIC OP VALUE": OP is one of == != <= >= < >, and VALUE a number, a percentage, a duration
// or another metric.
func ParseAssertion(text string) (Assertion, error) {
	m := assertionForm.FindStringSubmatch(text)
	if m == nil {
		return Assertion{}, fmt.Errorf("%q is no assertion, such as \"timeToBind.p99 < 10s\"", text)
	}
	return Assertion{strings.TrimSpace(text), parseOperand(m[1]), parseOperand(m[3]), m[2]}, nil
}

func parseOperand(text string) operand {
	number, percent := strings.CutSuffix(text, "%")
	if v, err := strconv.ParseFloat(number, 64); err == nil {
		if percent {
			v /= 100
		}
		return operand{number: v}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return operand{number: d.Seconds()}
	}
	return operand{metric: text}
}

// Unknown returns the metrics that an assertion names and that runs do not have.
func (a Assertion) Unknown(names []string) (list []string) {
	for _, o := range []operand{a.left, a.right} {
		if o.metric != "" && !slices.Contains(names, o.metric) {
			list = append(list, o.metric)
		}
	}
	return list
}

// Check returns an error if a result does not satisfy the assertion. A metric without a value satisfies none.
func (a Assertion) Check(r *sim.Result) error {
	left, err := a.left.value(r)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Text, err)
	}
	right, err := a.right.value(r)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Text, err)
	}
	holds := map[string]bool{"==": left == right, "!=": left != right, "<=": left <= right, ">=": left >= right,
		"<": left < right, ">": left > right}
	if holds[a.op] {
		return nil
	}
	return fmt.Errorf("%s: got %s and %s", a.Text, short(left), short(right))
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func (o operand) value(r *sim.Result) (float64, error) {
	if o.metric == "" {
		return o.number, nil
	}
	m, _ := r.Find(o.metric)
	if m.Value == nil {
		return 0, fmt.Errorf("metric %s has no value", o.metric)
	}
	return *m.Value, nil
}

// Closest returns the name that is most similar to a misspelled one, empty if none is.
func Closest(name string, names []string) string {
	best, least := "", len(name)/2+1
	for _, n := range names {
		if d := distance(name, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
