//! People in the loop: items 27 to 37.
