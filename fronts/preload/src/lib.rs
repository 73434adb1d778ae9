//! liblargesse.so
