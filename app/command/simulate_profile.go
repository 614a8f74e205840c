// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
)

// defaultProfile is the name of the configuration without a file.
const defaultProfile = "default"

// profileUsage describes the values of --profile.
const profileUsage = "a file, default, or the name of a preset (kumiki config preset)"

// isNamed reports whether a value of --profile is the name of a configuration that comes with kumiki, and no file.
func isNamed(profile string) bool {
	return profile == defaultProfile || slices.Contains(config.Presets(), profile)
}

// profileText returns the text of a configuration: of a preset, or of a file. The default one has none.
func profileText(profile string) ([]byte, error) {
	if profile == defaultProfile {
		return nil, nil
	}
	if isNamed(profile) {
		return config.Preset(profile)
	}
	text, err := os.ReadFile(profile)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(profile) == profile {
		return nil, fmt.Errorf("%s is neither a file nor one of %s, %s", profile, defaultProfile,
			strings.Join(config.Presets(), ", "))
	}
	return text, err
}

// profileConfig returns the configuration of a value of --profile; the default one for an empty value.
func profileConfig(plugins app.Plugins, profile string) (config.Resolved, error) {
	if profile == "" || profile == defaultProfile {
		return plugins.DefaultConfig(), nil
	}
	text, err := profileText(profile)
	if err == nil && isNamed(profile) {
		return plugins.ParseConfig(text)
	}
	if err != nil {
		return config.Resolved{}, fmt.Errorf("configuration %s: %w", profile, err)
	}
	return simulatedConfig(plugins, profile)
}
