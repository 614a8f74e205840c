// SPDX-License-Identifier: Apache-2.0

package bound

// program is a linear program: the largest gain·x with rows·x <= limits and x >= 0.
//
// It is solved by the simplex method on a dense tableau, in two phases. Sizes are some thousand columns and some
// hundred rows at most.
type program struct {
	gain   []float64
	rows   [][]float64
	limits []float64
}

// tiny is what counts as 0. The amounts of a program must be about 1.
const tiny = 1e-9

// add adds a row.
func (p *program) add(row []float64, limit float64) {
	p.rows, p.limits = append(p.rows, row), append(p.limits, limit)
}

// maximum returns the largest gain, and false if no x satisfies the rows or the gain has no limit.
func (p *program) maximum() (gain float64, solved bool) {
	t := newTableau(p)
	first := 0
	for i := range t.basis {
		if t.at[i][t.last] < t.at[first][t.last] {
			first = i
		}
	}
	if len(t.basis) > 0 && t.at[first][t.last] < -tiny { // 0 is no solution: look for one
		t.pivot(first, t.last-1)
		if !t.improve(len(t.basis)+1, true) || t.at[len(t.basis)+1][t.last] < -tiny {
			return 0, false
		}
		t.dropExtra()
	}
	if !t.improve(len(t.basis), false) {
		return 0, false
	}
	return t.at[len(t.basis)][t.last], true
}

// extra is the number of the variable that makes any limits satisfiable, in the first phase.
const extra = -1

// tableau is the state of the simplex method. Its rows are those of the program, then the gain, then the extra
// variable as a gain; its columns are the variables that are 0, the extra variable among them, and the limits.
type tableau struct {
	at    [][]float64
	basis []int // by row: the variable that is not 0
	zero  []int // by column: the variable that is 0
	last  int   // column of the limits
}

func newTableau(p *program) *tableau {
	n := len(p.gain)
	t := &tableau{last: n + 1}
	for i, row := range p.rows {
		line := make([]float64, n+2)
		copy(line, row)
		line[n], line[n+1] = -1, p.limits[i]
		t.at, t.basis = append(t.at, line), append(t.basis, n+i)
	}
	gain, most := make([]float64, n+2), make([]float64, n+2)
	for j, g := range p.gain {
		gain[j] = -g
		t.zero = append(t.zero, j)
	}
	most[n] = 1
	t.zero = append(t.zero, extra)
	t.at = append(t.at, gain, most)
	return t
}

// pivot exchanges the variable of a row for that of a column.
func (t *tableau) pivot(r, s int) {
	inverse := 1 / t.at[r][s]
	for i, line := range t.at {
		if i == r || line[s] == 0 {
			continue
		}
		factor := float64(line[s] * inverse)
		for j, v := range t.at[r] {
			line[j] -= float64(v * factor)
		}
		line[s] = -factor
	}
	for j := range t.at[r] {
		t.at[r][j] = float64(t.at[r][j] * inverse)
	}
	t.at[r][s] = inverse
	t.basis[r], t.zero[s] = t.zero[s], t.basis[r]
}

// improve exchanges variables until the gain in a row cannot grow, and reports whether it has a limit. The extra
// variable takes part in the first phase only.
func (t *tableau) improve(row int, withExtra bool) bool {
	for steps := 0; ; steps++ {
		s := t.column(row, withExtra, steps > 20*len(t.zero))
		if s < 0 {
			return true
		}
		r := t.leaves(s)
		if r < 0 {
			return false
		}
		t.pivot(r, s)
	}
}

// column returns the column of the largest growth, or of the first variable that grows (Bland's rule, with which the
// method cannot run in a circle); -1 for none.
func (t *tableau) column(row int, withExtra, first bool) int {
	s := -1
	for j, v := range t.zero {
		if !withExtra && v == extra || t.at[row][j] > -tiny {
			continue
		}
		if s < 0 || !first && t.at[row][j] < t.at[row][s] || first && v < t.zero[s] {
			s = j
		}
	}
	return s
}

// leaves returns the row whose variable is the first to be 0 when that of a column grows; -1 for none.
func (t *tableau) leaves(s int) int {
	r := -1
	for i, v := range t.basis {
		if t.at[i][s] < tiny {
			continue
		}
		if r < 0 {
			r = i
			continue
		}
		a, b := float64(t.at[i][t.last]*t.at[r][s]), float64(t.at[r][t.last]*t.at[i][s])
		if a < b || a == b && v < t.basis[r] {
			r = i
		}
	}
	return r
}

// dropExtra takes the extra variable, which is 0 now, out of the basis.
func (t *tableau) dropExtra() {
	for i, v := range t.basis {
		if v != extra {
			continue
		}
		s := 0
		for j := range t.zero {
			if abs(t.at[i][j]) > abs(t.at[i][s]) {
				s = j
			}
		}
		t.pivot(i, s)
	}
}

func abs(v float64) float64 { return max(v, -v) }
