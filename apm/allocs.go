// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// maxProfile is the accepted size of a decompressed profile.
const maxProfile = 256 << 20

// readAllocs returns the allocated bytes of an allocation profile by the function that allocated them.
func readAllocs(r io.Reader) (bytes map[string]int64, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the allocation profile is damaged: %v", cause)
		}
	}()
	p, err := readProfile(r)
	if err != nil {
		return nil, fmt.Errorf("the allocation profile: %w", err)
	}
	index := -1
	for i, t := range p.SampleType {
		if t.Type == "alloc_space" && t.Unit == "bytes" {
			index = i
		}
	}
	if index < 0 {
		return nil, errors.New("the allocation profile has no allocated bytes")
	}
	bytes = map[string]int64{}
	for _, s := range p.Sample {
		if name := leaf(s); name != "" {
			bytes[name] += s.Value[index]
		}
	}
	return bytes, nil
}

// readProfile reads a profile in the format of pprof, with a limit of its size. (profile.Parse has none.)
func readProfile(r io.Reader) (*profile.Profile, error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("not a profile: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(unpacked, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("truncated or damaged: %w", err)
	}
	if len(data) > maxProfile {
		return nil, fmt.Errorf("more than %d bytes after decompression", maxProfile)
	}
	return profile.ParseUncompressed(data)
}

// leaf returns the innermost function of a sample, inlined ones included, that is not the allocator's.
func leaf(s *profile.Sample) string {
	for _, l := range s.Location {
		for _, line := range l.Line {
			if line.Function != nil && line.Function.Name != "" {
				return line.Function.Name
			}
		}
	}
	return ""
}
