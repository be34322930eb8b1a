package program

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// openInput opens a file, or standard input for "-". It returns the size, or 0 if it is unknown.
func openInput(name string) (io.ReadCloser, int64, error) {
	const advice = "give an existing file, or - for standard input"
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return nil, 0, misused(err, advice)
		}
	}
	switch info, err := file.Stat(); {
	case err == nil && info.IsDir():
		return nil, 0, errors.Join(misused(fmt.Errorf("%s is a directory", name), advice), file.Close())
	case err == nil && info.Mode().IsRegular():
		return file, info.Size(), nil
	}
	return file, 0, nil
}
