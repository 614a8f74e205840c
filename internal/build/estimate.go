// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"math"
	"time"
)

// Costs of what is not a compilation, in the same unit as Work: seconds of CPU time on the reference machine.
const (
	secondsPerModule = 0.1  // to download
	secondsToLink    = 30.0 // all programs
	secondsToStart   = 10.0 // the cluster, after the build
	// secondsUnknown is the cost of the compilation until the list of packages is there.
	secondsUnknown = 800.0
)

// Part is a part of the build.
type Part string

// The parts, in their order.
const (
	Downloading Part = "downloading modules"
	Compiling   Part = "compiling"
	Linking     Part = "linking"
)

// State is how far a build is.
type State struct {
	Part Part
	// Modules have been downloaded, of about MissingModules.
	Modules, MissingModules int
	// Ready of Total seconds of CPU time are done; Total is 0 while it is unknown. Found of them were in the cache:
	// they were done when the first compilation began.
	Ready, Total, Found float64
	// Compiling is the time since the first compilation began, 0 before it.
	Compiling time.Duration
	// Downloading is the time that the downloads took so far.
	Downloading time.Duration
	CPUs        int
}

// trust is how long the compilation must last until its measured speed counts as much as the number of processors.
const trust = 20 * time.Second

// Fraction returns which part of the build is done, from 0 to 1.
func (s State) Fraction() float64 {
	modules, compile := s.costs()
	done := modules*s.downloaded() + s.Ready
	if s.Part == Linking {
		done = modules + compile
	}
	return min(1, done/(modules+compile+secondsToLink))
}

// Left estimates how long the build and the start of the cluster will take.
func (s State) Left() time.Duration {
	_, compile := s.costs()
	seconds := secondsToLink + secondsToStart
	if s.Part != Linking {
		seconds += (compile - s.Ready) / s.speed()
	}
	if s.Part == Downloading && s.Modules > 0 {
		each := s.Downloading.Seconds() / float64(s.Modules)
		seconds += each * float64(max(0, s.MissingModules-s.Modules))
	}
	return time.Duration(seconds * float64(time.Second))
}

func (s State) costs() (modules, compile float64) {
	compile = s.Total
	if compile == 0 {
		compile = secondsUnknown
	}
	return secondsPerModule * float64(s.MissingModules), compile
}

// downloaded returns which part of the modules is there. Their number is an upper bound, so it is all of them when the
// compilation has begun.
func (s State) downloaded() float64 {
	if s.Part != Downloading || s.MissingModules == 0 {
		return 1
	}
	return min(1, float64(s.Modules)/float64(s.MissingModules))
}

// speed returns how many seconds of CPU time are done in a second: at first as many as there are processors, later as
// measured.
func (s State) speed() float64 {
	measured := max(0, s.Ready-s.Found)
	return (measured + float64(s.CPUs)*trust.Seconds()) / (s.Compiling + trust).Seconds()
}

// String returns the state as one line: "building: 43 %, about 4 min left (compiling)".
func (s State) String() string {
	part := string(s.Part)
	if s.Part == Downloading {
		part = fmt.Sprintf("%s, %d of up to %d", s.Part, s.Modules, max(s.Modules, s.MissingModules))
	}
	return fmt.Sprintf("building: %d %%, %s left (%s)", int(100*s.Fraction()), about(s.Left()), part)
}

// about rounds a time to what an estimate can state.
func about(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 50:
		return fmt.Sprintf("about %d s", int(10*math.Ceil(max(1, s)/10)))
	default:
		return fmt.Sprintf("about %d min", int(math.Ceil((s-10)/60)))
	}
}
