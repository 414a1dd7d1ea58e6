//! The example tables of `config/`, each before small servers that answer as the real ones do, warts included.

mod asked;
mod calls;
mod cdev;
mod fake_cdev;
mod fake_pierre;
mod pierre;
