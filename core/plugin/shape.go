// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"slices"
)

// ShapePoint is a point of a function from utilization to score: at Utilization percent the score is Score, from 0 to
// 10. Straight lines join the points.
type ShapePoint struct {
	Utilization, Score int64
}

// CheckShape returns what is wrong with a shape: it needs a point, utilizations that rise, and values in range.
func CheckShape(shape []ShapePoint) error {
	if len(shape) == 0 {
		return errors.New("shape: at least one point is needed")
	}
	for i, p := range shape {
		switch {
		case i > 0 && shape[i-1].Utilization >= p.Utilization:
			return fmt.Errorf("shape: utilization values must be sorted in increasing order: %d after %d",
				p.Utilization, shape[i-1].Utilization)
		case p.Utilization < 0 || p.Utilization > 100:
			return fmt.Errorf("shape: utilization %d not in valid range [0, 100]", p.Utilization)
		case p.Score < 0 || p.Score > 10:
			return fmt.Errorf("shape: score %d not in valid range [0, 10]", p.Score)
		}
	}
	return nil
}

// ScoreAt evaluates a shape of at least one point at p percent, in integers, on the scale to MaxScore (upstream:
// helper.BuildBrokenLinearFunction).
func ScoreAt(shape []ShapePoint, p int64) int64 {
	i := slices.IndexFunc(shape, func(s ShapePoint) bool { return p <= s.Utilization })
	switch i {
	case -1:
		return shape[len(shape)-1].Score * 10
	case 0:
		return shape[0].Score * 10
	}
	from, to := shape[i-1], shape[i]
	return from.Score*10 + (to.Score-from.Score)*10*(p-from.Utilization)/(to.Utilization-from.Utilization)
}
