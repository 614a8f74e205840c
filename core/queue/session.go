// SPDX-License-Identifier: Apache-2.0

package queue

// ActivateAll makes every unit active that no gate holds, in whatever state it waits, and returns all active ones in
// the order of the queue. Gates run again. Units that are set aside or in flight do not change.
func (q *Queue) ActivateAll() []*Unit {
	units := append([]*Unit(nil), q.backoff.units...)
	units = append(units, q.errors.units...)
	for _, g := range q.groups {
		g.each(func(u *Unit) { units = append(units, u) })
	}
	n := note{event: sessionStart, cause: "a session starts"}
	for _, u := range sorted(units, older) {
		q.toActive(u, n)
	}
	return sorted(q.active.units, q.active.less)
}

// Take removes a unit as Pop removes the first one, and reports whether it did. It does not if the unit does not wait
// to be tried: it is gone, in flight or behind a gate; or it is a surplus member, and a unit that is ordered before
// it backs off after its own attempt.
func (q *Queue) Take(u *Unit) bool {
	if u.extra && u.at == active && q.needed(u) != nil {
		return false
	}
	switch u.at {
	case active, backoff, resting, errorBackoff:
		q.putInFlight(u)
		return true
	}
	return false
}

// TakeGated removes a unit as Pop removes the first one, and reports whether it did. It does not unless the unit waits
// behind a gate of that name that has opened, and no other gate holds it.
func (q *Queue) TakeGated(u *Unit, gate string) bool {
	if u.at != waiting || u.Gate != gate {
		return false
	}
	if closed, _ := q.closedGate(u); closed != "" {
		return false
	}
	u.Gate, u.GateReason = "", ""
	q.putInFlight(u)
	return true
}

// Waiting reports whether ActivateAll would return a unit without a known gate.
func (q *Queue) Waiting() bool {
	if q.active.len()+q.backoff.len()+q.errors.len() > 0 {
		return true
	}
	for _, g := range q.groups {
		if g.gate == "" && g.n > 0 {
			return true
		}
	}
	return false
}
